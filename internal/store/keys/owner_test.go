package keys

import "testing"

func TestOwnerOfKeys(t *testing.T) {
	for key, want := range map[string]Owner{
		Ledger(3):                              {GameID: 3},
		Wallet(3, 7):                           {GameID: 3},
		Game(3):                                {GameID: 3},
		NewPlayers(3):                          {GameID: 3},
		GrantedIdentity(3, "issuer", "5"):      {GameID: 3},
		Board(3, "top"):                        {GameID: 3},
		User(7):                                {UserID: 7},
		Save(7, 3, "main"):                     {GameID: 3},
		Saves(7, 3):                            {GameID: 3},
		Friends(7):                             {UserID: 7},
		PlayerPair(9, 7):                       {UserID: 7},
		RateLimit("read", "u7"):                {UserID: 7},
		RateLimit("read", "192.0.2.1"):         {},
		StoredResponse("u7", "digest"):         {UserID: 7},
		StoredResponse("g3", "digest"):         {GameID: 3},
		ServerTrail(3):                         {GameID: 3},
		RoutineTrail(3):                        {GameID: 3},
		Trail("operator"):                      {},
		TrailNumber():                          {},
		Meta():                                 {},
		Room(FreeShard(2), "id"):               {Room: Room(FreeShard(2), "id")},
		RoomEvents(FreeShard(2), "id"):         {Room: Room(FreeShard(2), "id")},
		RoomIndex(FreeShard(2), 3, "open"):     {GameID: 3},
		Feed(FreeShard(2), 3):                  {GameID: 3},
		FeedHead(FreeShard(2), 3):              {GameID: 3},
		Feed(EconomyShard(3), 3):               {GameID: 3},
		FreeRooms(FreeShard(2)):                {},
		PlayerRooms(FreeShard(2), 7):           {UserID: 7},
		RoomReceipt(FreeShard(2), "u7", "key"): {UserID: 7},
		"":                                     {},
		"another":                              {},
		"{}:x":                                 {},
	} {
		if got := OwnerOf(key); got != want {
			t.Errorf("the owner of %q is %+v; want %+v", key, got, want)
		}
	}
}
