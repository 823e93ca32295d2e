// What Parlor.cs calls in the page. The texts that C# gets are freed when it returns.
mergeInto(LibraryManager.library, {
  ParlorOpen: function (options, receive) {
    function allocate(text) {
      var size = lengthBytesUTF8(text) + 1;
      var pointer = _malloc(size);
      stringToUTF8(text, pointer, size);
      return pointer;
    }
    window.ParlorBridge.open(UTF8ToString(options), function (target, name, json) {
      var a = allocate(target), b = allocate(name), c = allocate(json);
      try {
        {{{ makeDynCall('viii', 'receive') }}}(a, b, c);
      } finally {
        _free(a);
        _free(b);
        _free(c);
      }
    });
  },

  ParlorAsk: function (id, method, args) {
    window.ParlorBridge.ask(UTF8ToString(id), UTF8ToString(method), UTF8ToString(args));
  },

  // Unity frees the text that it gets.
  ParlorFormat: function (amount, tokenId) {
    var text = window.ParlorBridge.format(UTF8ToString(amount), UTF8ToString(tokenId));
    var size = lengthBytesUTF8(text) + 1;
    var pointer = _malloc(size);
    stringToUTF8(text, pointer, size);
    return pointer;
  },

  ParlorTime: function () {
    return window.ParlorBridge.time();
  },

  ParlorClose: function () {
    window.ParlorBridge.close();
  },
});
