package scripts_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// presenceExamples has calls of the scripts of presence.
var presenceExamples = []example{
	{scripts.PresenceSet, "a player with a seat", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).here("lease001", 1, "1,2", "")
	}},
	{scripts.PresenceSet, "a player without a seat", "ok", func(f *fixture) call {
		return f.openRoom(nil).here("lease001", 1, "2", "")
	}},
	{scripts.PresenceSet, "a player who is gone", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2)
		r.here("lease001", 1, "1,2", "").want(scripts.OK)
		return r.here("lease001", 2, "", "2")
	}},
	{scripts.PresenceSet, "all players but one", "ok", func(f *fixture) call {
		r := f.openRoom(values{"entry": 0}).join(2, 3)
		r.here("lease001", 1, "1,2,3", "").want(scripts.OK)
		return r.here("lease001", 2, "3", "*")
	}},
	{scripts.PresenceSet, "a lease that has ended", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2)
		r.here("lease001", 1, "1,2", "").want(scripts.OK)
		r.here("lease002", 1, "1", "").want(scripts.OK)
		r.presenceCall(scripts.PresenceEnd, "lease001").want(scripts.OK)
		return r.here("lease001", 0, "", "*").with(values{"of_ended": 1})
	}},
	{scripts.PresenceSet, "a room that has ended", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2)
		r.here("lease001", 1, "1,2", "").want(scripts.OK)
		return r.cancel("1,2").here("lease001", 2, "", "1,2")
	}},
	{scripts.PresenceSet, "no room", "ok", func(f *fixture) call {
		r, _ := f.newRoom(nil)
		return r.here("lease001", 1, "1", "")
	}},
	{scripts.PresenceSet, "by a lease that has ended", "stale", func(f *fixture) call {
		r := f.openRoom(nil)
		r.presenceCall(scripts.PresenceEnd, "lease001").want(scripts.OK)
		return r.here("lease001", 1, "1", "")
	}},
	{scripts.PresenceSet, "for a lease that goes on", "stale", func(f *fixture) call {
		r := f.openRoom(nil)
		r.here("lease001", 1, "1", "").want(scripts.OK)
		return r.here("lease001", 0, "", "*").with(values{"of_ended": 1})
	}},
	{scripts.PresenceSet, "a call that is late", "stale", func(f *fixture) call {
		r := f.openRoom(nil)
		r.here("lease001", 9, "1", "").want(scripts.OK)
		return r.here("lease001", 8, "", "1")
	}},
	{scripts.PresenceEnd, "with rooms", "ok", func(f *fixture) call {
		r := f.openRoom(nil)
		r.here("lease001", 1, "1", "").want(scripts.OK)
		return r.presenceCall(scripts.PresenceEnd, "lease001")
	}},
	{scripts.PresenceRenew, "the first time", "ok", func(f *fixture) call { return f.newRenewal(8000) }},
	{scripts.PresenceRenew, "after its time", "ok", func(f *fixture) call {
		f.newRenewal(-1).want(scripts.OK)
		return f.newRenewal(8000)
	}},
	{scripts.PresenceRenew, "after its end", "stale", func(f *fixture) call {
		f.newRenewal(-1).want(scripts.OK)
		f.newCall(scripts.PresenceClaim, values{"lease": "lease001"}).want(scripts.OK)
		return f.newRenewal(8000)
	}},
	{scripts.PresenceClaim, "of which all players are announced", "stale", func(f *fixture) call {
		announced := redis.Z{Score: -1, Member: "lease001"}
		testkit.Check(f.t, f.db.Client.ZAdd(f.t.Context(), keys.PresenceLeases(), announced).Err())
		f.newRenewal(8000).want(scripts.Stale)
		return f.newCall(scripts.PresenceClaim, values{"lease": "lease001"})
	}},
	{scripts.PresenceClaim, "after its time", "ok", func(f *fixture) call {
		f.newRenewal(-1).want(scripts.OK)
		return f.newCall(scripts.PresenceClaim, values{"lease": "lease001"})
	}},
	{scripts.PresenceClaim, "before its time", "stale", func(f *fixture) call {
		f.newRenewal(8000).want(scripts.OK)
		return f.newCall(scripts.PresenceClaim, values{"lease": "lease001"})
	}},
	{scripts.PresenceClaim, "no lease", "stale", func(f *fixture) call {
		return f.newCall(scripts.PresenceClaim, values{"lease": "lease001"})
	}},
}

func (f *fixture) newRenewal(leaseMS int) call {
	return f.newCall(scripts.PresenceRenew, values{"lease": "lease001", "lease_ms": leaseMS, "shards": 0})
}

// presenceCall returns a call on the room's shard.
func (r *room) presenceCall(s *scripts.Script, lease string) call {
	return r.call(s, 1, values{"lease": lease, "ended_ms": 3_600_000, "grace_ms": 10_000, "of_ended": 0})
}

// here returns the call of a node that has sockets of the users here, and none any more of those
// who are gone.
func (r *room) here(lease string, number int, here, gone string) call {
	return r.presenceCall(scripts.PresenceSet, lease).with(values{"number": number, "here": here, "gone": gone})
}

func TestALeaseThatIsNotRenewedIsShownToTheOthers(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		over, renewed := fmt.Sprintf("over%04d", f.id), fmt.Sprintf("kept%04d", f.id)
		renew := func(lease string, leaseMS, shards int) redisdb.Reply {
			return f.newRenewal(leaseMS).with(values{"lease": lease, "shards": shards}).want(scripts.OK)
		}
		renew(over, -1, 0)
		reply := renew(renewed, 8000, 1)
		if !slices.Contains(reply.Values, over) || reply.Values[0] != "1" {
			t.Errorf("%v; want the lease %s, and that the shard is missing", reply, over)
		}
		testkit.Check(t, db.Client.SAdd(t.Context(), keys.PresenceShards(renewed), "r1").Err())
		renew(over, 8000, 0)
		reply = renew(renewed, 8000, 1)
		if reply.Values[0] != "0" || len(reply.Values) > 1 {
			t.Errorf("%v; want that no shard is missing, and that no lease is over", reply)
		}
		f.dropAll("{p}:presence")
	})
}

// presenceModel is what the scripts of presence must do with one room.
type presenceModel struct {
	seats   map[int]int             // the seat of each user, numbered as they are taken
	taken   int                     // seats so far
	told    map[int]int             // the seat of each user of which was told
	gone    map[int]bool            // told as disconnected
	leases  map[int]map[string]bool // with sockets, by user
	numbers map[string]int          // of the last call, by lease
	ended   map[string]bool
	over    bool     // the room has ended
	events  []string // of presence
}

func (m *presenceModel) set(lease string, here, gone []int) {
	if m.over {
		return
	}
	var leaving []int
	for _, user := range here {
		switch seat, seated := m.seats[user]; {
		case !seated && m.leases[user][lease]:
			leaving = append(leaving, user)
		case seated:
			if m.leases[user] == nil {
				m.leases[user] = map[string]bool{}
			}
			m.leases[user][lease] = true
			if m.told[user] != seat || m.gone[user] {
				m.events = append(m.events, fmt.Sprintf("room.connected %d", user))
				m.told[user], m.gone[user] = seat, false
			}
		}
	}
	for _, user := range append(leaving, gone...) {
		if !m.leases[user][lease] {
			continue
		}
		delete(m.leases[user], lease)
		if len(m.leases[user]) > 0 {
			continue
		}
		if seat, seated := m.seats[user]; seated && m.told[user] == seat {
			m.events = append(m.events, fmt.Sprintf("room.disconnected %d", user))
			m.gone[user] = true
		} else {
			delete(m.told, user)
			delete(m.gone, user)
		}
	}
}

// usersOf returns the users who have a socket by a lease, in the order of their ids.
func (m *presenceModel) usersOf(lease string) (users []int) {
	for user, leases := range m.leases {
		if leases[lease] {
			users = append(users, user)
		}
	}
	slices.Sort(users)
	return users
}

// presenceEvents returns the presence events of a room, and fails when a number is missing.
func (r *room) presenceEvents() (list []string) {
	r.t.Helper()
	for i, entry := range r.list(keys.RoomEvents(r.shard, r.id)) {
		parts := strings.Split(entry, "|")
		if number, _, _ := strings.Cut(parts[0], "-"); number != strconv.Itoa(i+1) {
			r.t.Fatalf("event %d is %s", i+1, entry)
		}
		if parts[1] == "room.connected" || parts[1] == "room.disconnected" {
			list = append(list, parts[1]+" "+parts[3])
		}
	}
	return list
}

func TestPresenceAgreesWithItsModel(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		rapid.Check(t, func(t *rapid.T) {
			f := newFixture(t, db)
			r := f.openRoom(values{"entry": 0, "max_players": 5, "min_players": 1})
			m := &presenceModel{
				seats: map[int]int{1: 1}, taken: 1, told: map[int]int{}, gone: map[int]bool{},
				leases: map[int]map[string]bool{}, numbers: map[string]int{}, ended: map[string]bool{},
			}
			leases := []string{"lease001", "lease002", "lease003"}
			lease := rapid.SampledFrom(leases)
			user := rapid.IntRange(1, 5)
			users := rapid.SliceOfNDistinct(user, 0, 3, rapid.ID[int])
			last := map[string]call{} // of each lease
			check := func() {
				if got := r.presenceEvents(); !slices.Equal(got, m.events) {
					t.Fatalf("the events are %v; want %v", got, m.events)
				}
				for _, lease := range leases {
					has := f.field(keys.PresenceLease(r.shard, lease), r.id) == "1"
					if owns := len(m.usersOf(lease)) > 0; owns && !has && !m.over {
						t.Fatalf("%s has players and not the room", lease)
					}
				}
			}
			t.Repeat(map[string]func(*rapid.T){
				"": func(*rapid.T) { check() },
				"set": func(t *rapid.T) {
					lease, here, all := lease.Draw(t, "lease"), users.Draw(t, "here"), rapid.Bool().Draw(t, "all")
					gone := slices.DeleteFunc(users.Draw(t, "gone"), func(id int) bool { return slices.Contains(here, id) })
					text := joinUsers(gone)
					if all {
						text = "*"
						gone = slices.DeleteFunc(m.usersOf(lease), func(id int) bool { return slices.Contains(here, id) })
					}
					m.numbers[lease]++
					c := r.here(lease, m.numbers[lease], joinUsers(here), text)
					if m.ended[lease] {
						c.changesNothing(scripts.Stale)
						return
					}
					reply := c.want(scripts.OK)
					if again := c.want(scripts.OK); !slices.Equal(again.Values, reply.Values) {
						t.Fatalf("sent again: %v, then %v", reply, again)
					}
					last[lease] = c
					m.set(lease, here, gone)
				},
				"late": func(t *rapid.T) {
					lease := lease.Draw(t, "lease")
					late, ok := last[lease]
					if !ok || m.ended[lease] || m.over {
						t.Skip("nothing was sent")
					}
					stored, _ := strconv.Atoi(f.field(keys.PresenceLease(r.shard, lease), "call"))
					if late.number("number") < int64(stored) {
						late.changesNothing(scripts.Stale)
					}
				},
				"join": func(t *rapid.T) {
					id := user.Draw(t, "user")
					if _, seated := m.seats[id]; seated || m.over || len(m.seats) == 0 {
						t.Skip("seated")
					}
					r.join(id)
					m.taken++
					m.seats[id] = m.taken
				},
				"leave": func(t *rapid.T) {
					id := user.Draw(t, "user")
					if _, seated := m.seats[id]; !seated || m.over || len(m.seats) == 1 {
						t.Skip("not seated")
					}
					r.call(scripts.RoomLeave, id, nil).want(scripts.OK)
					delete(m.seats, id)
				},
				"end a lease": func(t *rapid.T) {
					lease := lease.Draw(t, "lease")
					reply := r.presenceCall(scripts.PresenceEnd, lease).want(scripts.OK)
					m.ended[lease] = true
					if len(m.usersOf(lease)) > 0 && !m.over && !slices.Contains(reply.Values, r.id) {
						t.Fatalf("the end of %s names %v", lease, reply.Values)
					}
					sweep := r.here(lease, 0, "", "*").with(values{"of_ended": 1})
					sweep.want(scripts.OK)
					sweep.want(scripts.OK)
					m.set(lease, nil, m.usersOf(lease))
				},
				"end the room": func(t *rapid.T) {
					if m.over || rapid.IntRange(0, 9).Draw(t, "odds") > 0 {
						t.Skip("it goes on")
					}
					var seated []int
					seated = slices.AppendSeq(seated, maps.Keys(m.seats))
					slices.Sort(seated)
					r.cancel(joinUsers(seated))
					m.over = true
				},
			})
			check()
			f.dropAll(r.call(scripts.PresenceSet, 1, nil).shardTag())
		})
	})
}

func (c call) shardTag() string { return "{" + c.shard.String() + "}:" }

func joinUsers(ids []int) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(id)
	}
	return strings.Join(texts, ",")
}
