package rooms

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/scripts"
)

// What rooms feed: what the value feeds of their settings begins with.
const (
	FeedsBoards = "boards" // the leaderboards of the game
	FeedsMatch  = "t."     // a match: "t.<tournament>.<match>.<attempt>"
)

// Ended is a room that has ended and for which a consumer waits.
type Ended struct {
	RoomID        string
	GameID        int64
	Feeds         string    // as in the settings of the room: "boards", "t.<tournament>.<match>.<attempt>"
	Status        Status    // Finished or Cancelled
	Reason        string    // why it was cancelled; "" when it was not
	SettledBy     SettledBy //
	TokenDecimals int       // of the payouts
	StartedAt     time.Time // by the store's clock, to the millisecond; zero when it was not started
	EndedAt       time.Time // likewise
	Places        []Place   // the result, best place first; nil of a cancelled room
}

// Place is what a player reached in a room that has ended.
type Place struct {
	UserID int64
	Place  int          // from 1; 0 for a forfeited seat
	Score  string       // a JSON number, as it was reported; "" for none
	Payout wallet.Units // minor units of the room's token; 0 in a free room
}

// Consumer applies an ended room. It may get the same room again and must apply it once. It returns
// nil when it has applied the room or has nothing to do. After an error for which apierror.IsFinal
// is true the room is parked, which holds no other up. After any other error it comes again.
type Consumer func(ctx context.Context, e Ended) error

// consumer is who waits for the rooms whose feeds begin with a prefix.
type consumer struct {
	prefix string
	apply  Consumer
}

// SetConsumer makes a consumer get the rooms whose feeds begin with a prefix. It must be called
// before Run.
func (s *Service) SetConsumer(prefix string, c Consumer) {
	s.store.consumers = append(s.store.consumers, consumer{prefix, c})
}

// ParkedCount returns how many ended rooms this node has parked.
func (s *Service) ParkedCount() int64 { return s.store.parkedCount.Load() }

var endLayout = redisdb.PackedLayout{Name: "the end of a room", Separator: '|', Names: scripts.RoomEnd.Names}

// decodeEnded returns the room of an entry.
func decodeEnded(roomID, entry string) (Ended, error) {
	r := endLayout.Split(entry)
	e := Ended{
		RoomID: roomID, EndedAt: r.Time("ended"), GameID: r.Int("game"), Feeds: r.Text("feeds"),
		Status: Status(r.Text("status")), Reason: r.Text("reason"), SettledBy: SettledBy(r.Text("settled_by")),
	}
	if r.Text("started") != "" {
		e.StartedAt = r.Time("started")
	}
	e.TokenDecimals = int(r.Int("decimals"))
	err := r.Err()
	if err == nil {
		e.Places, err = decodePlaces(r.Text("placements"))
	}
	if err != nil {
		return Ended{}, fmt.Errorf("room %s: %w", roomID, err)
	}
	return e, nil
}

// decodePlaces reads what encodePlacements returns.
func decodePlaces(text string) ([]Place, error) {
	var places []Place
	for one := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		parts := strings.Split(one, ":")
		if text == "" {
			break
		}
		if len(parts) != 4 {
			return nil, fmt.Errorf("decode the place %q: it has %d values", one, len(parts))
		}
		p := Place{Score: parts[3]}
		var errs [3]error
		p.UserID, errs[0] = strconv.ParseInt(parts[0], 10, 64)
		p.Place, errs[1] = strconv.Atoi(parts[1])
		if parts[2] != "" {
			var units int64
			units, errs[2] = strconv.ParseInt(parts[2], 10, 64)
			p.Payout = wallet.Units(units)
		}
		for _, err := range errs {
			if err != nil {
				return nil, fmt.Errorf("decode the place %q: %w", one, err)
			}
		}
		places = append(places, p)
	}
	return places, nil
}
