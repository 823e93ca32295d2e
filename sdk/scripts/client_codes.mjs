// The codes that only the SDK reports, with what a game does about each. The types, the documentation
// and the check that no code of the service takes one of them read this list.
export const clientCodes = [
  {
    code: "offline", title: "The service cannot be reached; the same call may succeed later", retryable: true,
    advice: "Show that the connection is lost, and go on: the SDK reconnects by itself, and `parlor.on(\"state\", …)` tells "
      + "when it is back. Repeat what the player still wants then. Saves and messages wait by themselves; money never does.",
  },
  {
    code: "timeout", title: "No answer in time; a call that changes something may have had its effect", retryable: true,
    advice: "Ask for the state before you ask again: `rooms.mine()`, `wallet.balances()`, `store.pending()`. A purchase is "
      + "settled by the SDK under its first key, also after a reload, so it is paid once.",
  },
  {
    code: "queue_full", title: "Too much waits to be sent already", retryable: true,
    advice: "Send less, or later: at most 64 messages, 256 KB and 10 s wait for a connection. Use `volatile` for what is soon "
      + "out of date, such as positions.",
  },
  {
    code: "aborted", title: "The call's own signal ended it", retryable: false,
    advice: "Nothing: your page asked for it. A change that was sent already may have had its effect.",
  },
  {
    code: "closed", title: "The client was closed", retryable: false,
    advice: "`parlor.close()` was called, or the service refused this page for good; `parlor.on(\"error\", …)` said why. "
      + "Make a new client with `Parlor.init`.",
  },
  {
    code: "protocol_too_old", title: "The service no longer speaks to this version of the SDK", retryable: false,
    advice: "Ask the player to reload the page, and load the newest SDK: `/sdk/v1.js` is always that one. See also "
      + "[close code 4426](/docs/close/4426).",
  },
];
