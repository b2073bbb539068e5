"""Measurements that the documentation quotes. Each module answers one question and keeps the raw numbers."""
