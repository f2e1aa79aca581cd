// A module that fails while it is loaded: the other graphs must not notice.
throw new RangeError("this graph is broken on purpose");
