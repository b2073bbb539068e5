"""Everything that knows a booster: one thin module for each library, installed as ``grbb_ext.adapters``."""
