"""Scientific-safety checks of this tree's model, before any training is paid for.

One module per invariant: ``causal`` (I1), ``gradients`` (I4), ``scoring`` (I5), ``mode`` (I6),
``isolation`` (I7), ``losses`` (I8), ``wiring`` (I11). They know the model by its public methods
only, never by the names of its parameters, so that they hold for changes nobody has thought of yet.
"""
