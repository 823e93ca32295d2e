// The SDK of Parlor for WebGL builds. Its page loads v1.js and bridge.v1.js.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading.Tasks;
using AOT;
using UnityEngine;

/// <summary>
/// A call that was refused or could not be sent. Code is one of the list at /docs/errors.
/// </summary>
public sealed class ParlorException : Exception
{
    [Serializable] sealed class Fields { public string code = "", detail = ""; public bool retryable = false; }

    public string Code { get; }
    /// <summary>A sentence for developers.</summary>
    public string Detail { get; }
    /// <summary>Whether the same call may succeed later.</summary>
    public bool Retryable { get; }
    /// <summary>The whole error, with its data such as what was required and available.</summary>
    public string Json { get; }

    internal ParlorException(string json) : this(JsonUtility.FromJson<Fields>(json), json) { }
    ParlorException(Fields e, string json) : base(e.code + ": " + e.detail)
    {
        Code = e.code;
        Detail = e.detail;
        Retryable = e.retryable;
        Json = json;
    }
}

/// <summary>
/// A player of a game. Everything runs on the main thread. Amounts are texts, in minor units.
/// </summary>
public static class Parlor
{
    /// <summary>"connecting", "online", "reconnecting", "offline" or "closed".</summary>
    public static string State { get; private set; } = "idle";
    /// <summary>
    /// An event of the player, such as "state", "user", "balance", "error": its name and JSON.
    /// </summary>
    public static event Action<string, string> Heard;
    /// <summary>
    /// An event of a room: the room's id, the event's name and JSON. Every one but "message" has
    /// the room.
    /// </summary>
    public static event Action<string, string, string> RoomHeard;

    static readonly Dictionary<string, TaskCompletionSource<string>> calls =
        new Dictionary<string, TaskCompletionSource<string>>();
    static int lastCall;

    /// <summary>Opens the client. Options are JSON, those of Parlor.init: {"gameId":1}.</summary>
    public static void Open(string options)
    {
        ParlorOpen(options, OnMessage);
    }

    /// <summary>
    /// Calls a method such as "rooms.join" and returns its JSON. The methods of a room begin with
    /// "room." and
    /// its id is their first argument. Throws ParlorException.
    /// </summary>
    public static Task<string> Call(string method, params object[] args)
    {
        var id = (++lastCall).ToString(CultureInfo.InvariantCulture);
        var call = new TaskCompletionSource<string>();
        calls[id] = call;
        ParlorAsk(id, method, ToJson(args));
        return call.Task;
    }

    /// <summary>Calls a method and reads its result by JsonUtility.</summary>
    public static async Task<T> Call<T>(string method, params object[] args)
    {
        return JsonUtility.FromJson<T>(await Call(method, args));
    }

    /// <summary>
    /// Returns an amount as players read it, "2.50 Gold", or "" before the token was seen.
    /// </summary>
    public static string Format(string amount, string tokenId)
    {
        return ParlorFormat(amount, tokenId);
    }

    /// <summary>The service's clock, in ms since 1970.</summary>
    public static double Time { get { return ParlorTime(); } }

    /// <summary>Ends the connection. Unfinished calls throw with the code closed.</summary>
    public static void Close()
    {
        ParlorClose();
        State = "closed";
        var open = new List<TaskCompletionSource<string>>(calls.Values);
        calls.Clear();
        foreach (var call in open)
        {
            call.TrySetException(new ParlorException("{\"code\":\"closed\",\"detail\":\"the client was closed\"}"));
        }
    }

    // A static method, because compiled code can be called by its address only.
    [MonoPInvokeCallback(typeof(Receive))]
    static void OnMessage(IntPtr targetText, IntPtr nameText, IntPtr jsonText)
    {
        var target = Marshal.PtrToStringUTF8(targetText);
        var name = Marshal.PtrToStringUTF8(nameText);
        var json = Marshal.PtrToStringUTF8(jsonText);
        try
        {
            Deliver(target, name, json);
        }
        catch (Exception e)
        {
            Debug.LogException(e); // of a listener; it must not reach the page
        }
    }

    static void Deliver(string target, string name, string json)
    {
        TaskCompletionSource<string> call;
        if (calls.TryGetValue(target, out call))
        {
            calls.Remove(target);
            if (name == "ok") call.TrySetResult(json);
            else call.TrySetException(new ParlorException(json));
            return;
        }
        if (target != "")
        {
            RoomHeard?.Invoke(target, name, json);
            return;
        }
        if (name == "state") State = json.Trim('"');
        Heard?.Invoke(name, json);
    }

    /// <summary>Returns the JSON of a value, as JsonUtility alone cannot.</summary>
    static string ToJson(object value)
    {
        if (value == null) return "null";
        if (value is string text) return Quote(text);
        if (value is bool) return (bool)value ? "true" : "false";
        if (value is Array list)
        {
            var items = new List<string>();
            foreach (var item in list) items.Add(ToJson(item));
            return "[" + string.Join(",", items) + "]";
        }
        var isNumber = value.GetType().IsPrimitive || value is decimal;
        if (isNumber) return ((IFormattable)value).ToString(null, CultureInfo.InvariantCulture);
        return JsonUtility.ToJson(value);
    }

    static string Quote(string text)
    {
        var quoted = new StringBuilder("\"");
        foreach (var c in text)
        {
            if (c == '"' || c == '\\') quoted.Append('\\').Append(c);
            else if (c < ' ') quoted.Append("\\u").Append(((int)c).ToString("x4"));
            else quoted.Append(c);
        }
        return quoted.Append('"').ToString();
    }

    delegate void Receive(IntPtr target, IntPtr name, IntPtr json);

    [DllImport("__Internal")] static extern void ParlorOpen(string options, Receive receive);
    [DllImport("__Internal")] static extern void ParlorAsk(string id, string method, string args);
    [DllImport("__Internal")] static extern string ParlorFormat(string amount, string tokenId);
    [DllImport("__Internal")] static extern double ParlorTime();
    [DllImport("__Internal")] static extern void ParlorClose();
}
