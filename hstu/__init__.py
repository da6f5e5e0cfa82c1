"""HSTU, a generative sequential recommender: data, model, training, preflight, evaluation."""
