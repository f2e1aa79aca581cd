# A module that fails while it is loaded: the other graphs must not notice.
raise RuntimeError("this graph is broken on purpose")
