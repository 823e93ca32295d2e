// Two players roll a die for 2.5 GOLD. Both report who has won, so the game needs no server.
using System;
using UnityEngine;

public sealed class Duel : MonoBehaviour
{
    [Serializable] sealed class User { public int id = 0; }
    [Serializable] sealed class UserEvent { public User user = null; }
    [Serializable] sealed class Token { public int id = 0; public string tokenId = ""; public string amount = ""; }
    [Serializable] sealed class Room
    {
        public string roomId = "", status = "", totalWagerAmount = "";
        public User[] participants = null;
    }
    [Serializable] sealed class RoomEvent { public Room room = null; public Payout[] payouts = null; }
    [Serializable] sealed class Payout { public int userId = 0; public string amount = ""; }
    [Serializable] sealed class CreateRoom
    {
        public int maxPlayers = 2, entryTokenId;
        public string roomEntry = "2.5", settlement = "consensus"; // a stake is a text: 2.5 is exact in it
        public bool autoStart = true;
    }
    [Serializable] sealed class Roll { public int n; }
    [Serializable] sealed class RollMessage { public string op = ""; public Roll payload = null; }
    [Serializable] sealed class Result { public int userId, place; }

    int me, mine, theirs;
    Token gold;
    Room room;
    string money = "", status = "Connecting";

    [RuntimeInitializeOnLoadMethod] static void Begin() { new GameObject("Duel").AddComponent<Duel>(); }

    void Start()
    {
        Parlor.Heard += OnHeard;
        Parlor.RoomHeard += OnRoomHeard;
        Parlor.Open("{\"gameId\":1}");
    }

    void OnDestroy()
    {
        Parlor.Heard -= OnHeard;
        Parlor.RoomHeard -= OnRoomHeard;
        Parlor.Close();
    }

    async void OnHeard(string name, string json)
    {
        if (name == "user") me = JsonUtility.FromJson<UserEvent>(json).user.id;
        if (name == "balance") ShowMoney(JsonUtility.FromJson<Token>(json).amount);
        if (name == "error") status = json;
        if (name != "state" || Parlor.State != "online" || gold != null) return;
        gold = await Parlor.Call<Token>("wallet.balance", "GOLD");
        ShowMoney(gold.amount);
        status = "Ready";
    }

    void ShowMoney(string amount) { money = "You have " + Parlor.Format(amount, "GOLD"); }

    async void Play()
    {
        try
        {
            status = "Waiting for an opponent";
            mine = theirs = 0;
            var joined = await Parlor.Call<Room>("rooms.quick", new CreateRoom { entryTokenId = gold.id });
            if (room == null) room = joined; // else an event, which came between two frames, has a newer one
            if (room.status == "STARTED") Started();
        }
        catch (ParlorException e)
        {
            status = e.Detail;
        }
    }

    void Started() { status = "The pot is " + Parlor.Format(room.totalWagerAmount, "GOLD"); }

    void OnRoomHeard(string roomId, string name, string json)
    {
        if (room != null && roomId != room.roomId) return;
        if (name == "message")
        {
            theirs = JsonUtility.FromJson<RollMessage>(json).payload.n;
            Report();
            return;
        }
        var e = JsonUtility.FromJson<RoomEvent>(json);
        room = e.room;
        if (name == "started") Started();
        if (name != "finished" && name != "cancelled") return;
        status = "You lost";
        if (name == "cancelled") status = "Your stake is back";
        else foreach (var payout in e.payouts)
        {
            if (payout.userId == me && payout.amount != "0") status = "You won " + Parlor.Format(payout.amount, "GOLD");
        }
        Parlor.Call("room.release", roomId);
        room = null;
    }

    void RollDie()
    {
        mine = UnityEngine.Random.Range(1, 7);
        Parlor.Call("room.send", room.roomId, "roll", new Roll { n = mine });
        Report();
    }

    /// <summary>
    /// Reports who has won, once both have rolled. A higher roll wins; equal ones are a tie.
    /// </summary>
    async void Report()
    {
        if (mine == 0 || theirs == 0) return;
        var results = new Result[2];
        for (var n = 0; n < 2; n++)
        {
            var user = room.participants[n].id;
            var won = user == me ? mine >= theirs : theirs >= mine;
            results[n] = new Result { userId = user, place = won ? 1 : 2 };
        }
        try { await Parlor.Call("room.finish", room.roomId, results); }
        catch (ParlorException e) { status = e.Detail; }
    }

    void OnGUI()
    {
        GUILayout.Label(money);
        GUILayout.Label(status);
        if (gold != null && room == null && GUILayout.Button("Play for 2.50")) Play();
        if (room != null && room.status == "STARTED" && mine == 0 && GUILayout.Button("Roll")) RollDie();
    }
}
