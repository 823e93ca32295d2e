package archtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// comparesTime lists the scripts and libraries that compare the store's time with another one and
// do not take the time of the node, each with the reason.
var comparesTime = map[string]string{
	"lib_skewed_clock": "it is the comparison",
	"lib_check_limits": "a player's own call: it is refused or not, and nothing ends",
	"board_submit":     "a player's own call, whose score goes to the season of its time",
	"presence_renew":   "it lists leases; presence_claim ends them",
	"refresh_rotate":   "a player's own call; a token shown again soon is the same token",
	"refresh_start":    "it drops names of sessions that Redis has removed by its own clock",
	"presence_set":     "it notes who came after a window, which room_window_close ends",
	"room_report":      "a player's own call, which is not in time; room_window_close ends the window",
	"tour_attempt":     "a player's own call: it is refused or not, and nothing ends",
	"tour_check_in":    "a player's own call: it is refused or not, and nothing ends",
	"tour_join":        "a player's own call: it is refused or not, and nothing ends",
	"wallet_limit":     "a player's own call: it is refused or not, and nothing ends",
}

var timeCompared = regexp.MustCompile(
	`\bnow_ms\b[^,;\n]*[<>]|[<>]=?[^,;\n]*\bnow_ms\b|math\.(max|min)\([^)]*\bnow_ms\b|BYSCORE'[^\n]*\bnow\b`)

// readsClock lists the files that read the store's clock to say when something is, not that it is
// over.
var readsClock = map[string]string{
	"internal/players/games/store.go":    "the day whose new players are counted",
	"competition/leaderboards/store.go":  "calls of players and staff; nowToEnd is for the leader",
	"internal/money/moneyhalt/store.go":  "when a halt began",
	"competition/tournaments/score.go":   "when an attempt began, for the player",
	"competition/tournaments/service.go": "dates of a new tournament must be to come",
	"internal/money/limits/limits.go":    "from when on a limit counts",
	"internal/money/limits/store.go":     "which limits count, for the player who asks",
	"internal/store/redisdb/clock.go":    "ReadClockToEnd compares it",
}

// endsNothing lists the work of leaders that goes on while the clocks differ.
var endsNothing = map[string]string{
	"rooms/store.go:outboxWork":                       "brings results of rooms to their consumers, whatever the time is",
	"internal/money/wallet/service.go:\"totals\"":     "adds up entries by their numbers",
	"internal/money/archiver/archiver.go:\"archive\"": "moves entries by their numbers; which stay is a count",
}

// backgroundWork lists what each node runs beside its requests: whether it ends something for
// somebody because of a time, and how that is held back.
var backgroundWork = map[string]string{
	"hub":       "sockets, by the monotonic clock of the node",
	"monitor":   "looks at the store and at the clocks",
	"history":   "compares ledgers by their numbers",
	"rooms":     "ends rooms and turns: leader.EndsByTime, and the scripts compare",
	"wallet":    "totals: leader.EndsNothing",
	"archiver":  "archive: leader.EndsNothing",
	"moneyHalt": "reads which games are halted; a person lifts a halt",
	"limiter":   "gives back permits of requests, by the monotonic clock of the node",
	"auth":      "reads which sessions have ended; a token ends by itself, which is a bound of security",
	"nodes":     "shows the nodes; one that was not heard for a while is not shown",
	"presence":  "ends leases of other nodes: AllowsEnding, and presence_claim compares",
	"servers":   "renews its own leases; one that is over is passed over by who reads it",
	"calls":     "ends calls, by the monotonic clock of the node",
	"boards":    "ends and pays seasons: leader.EndsByTime, and board_seal compares",
	"tours":     "opens, starts and ends tournaments and matches: leader.EndsByTime, and the scripts compare",
	"apiServer": "closes sockets whose session has ended",
	"usage":     "estimates what games have in the store; nothing ends",
	"activity":  "takes samples of games; nothing ends",
	"webhooks":  "gives an event up after a day of tries; nothing of a player ends",
	"trail":     "appends to a list of a bounded length",
}

var (
	endsNothingCall = regexp.MustCompile(`leader\.New(?:Timed)?\(\s*\w+, ([\w"]+), leader\.EndsNothing`)
	runField        = regexp.MustCompile(`\bn\.(\w+)\.Run\b`)
	purposeUse      = regexp.MustCompile(`leader\.EndsNothing\b`)
	guardUse        = regexp.MustCompile(`\.(AllowsEnding|ReadClockToEnd)\(`)
	leadUse         = regexp.MustCompile(`leader\.EndsByTime\b|\.RunAsLeader\(`)
)

var clockRules = []rule{
	{
		"a script that ends something by time compares the clocks of store and node",
		func(p *project) (violations []string) {
			list, _ := p.luaFiles()
			for _, f := range list {
				compares, isListed := timeCompared.MatchString(f.code), comparesTime[f.name()] != ""
				takes := slices.Contains(f.header.Includes, "skewed_clock")
				switch {
				case compares && !takes && !isListed:
					violations = append(violations, f.path+": compares the time and does not include skewed_clock; "+
						"a call of a player that ends nothing is listed in comparesTime")
				case isListed && (!compares || takes):
					violations = append(violations, f.path+": is listed in comparesTime without need")
				}
			}
			return violations
		},
		map[string]map[string]string{
			"a deadline": {"scripts/room_end.lua": "-- room_end: ends it.\n" +
				"if now_ms >= tonumber(deadline) then return 'ok' end\n"},
			"the other way round": {"scripts/room_end.lua": "-- room_end: ends it.\n" +
				"if tonumber(deadline) <= now_ms then return 'ok' end\n"},
			"a list by time": {"scripts/room_end.lua": "-- room_end: ends it.\n" +
				"redis.call('ZRANGEBYSCORE', key, '0', now)\n"},
			"listed without need": {"scripts/tour_join.lua": "-- tour_join: joins.\nreturn 'ok'\n"},
		},
	},
	{
		"the store's clock is read by ReadClockToEnd, or the reason stands in readsClock",
		func(p *project) (violations []string) {
			for _, s := range p.code {
				if s.isTest() {
					continue
				}
				if strings.Contains(s.text, "Client.Time(") && s.path != "internal/store/redisdb/clock.go" {
					violations = append(violations, s.path+": reads the store's clock past package redisdb")
				}
				if uses := strings.Contains(s.text, ".ReadClock("); uses != (readsClock[s.path] != "") {
					violations = append(violations, s.path+": calls ReadClock and is not listed, or the reverse")
				}
			}
			return violations
		},
		map[string]map[string]string{
			"a command":    {"rooms/store.go": `package rooms; func now() { db.Client.Time(ctx) }`},
			"not listed":   {"rooms/store.go": `package rooms; func now() { db.ReadClock(ctx) }`},
			"not used":     {"internal/money/moneyhalt/store.go": `package moneyhalt`},
			"another name": {"rooms/a.go": `package rooms; func now() { st.db.ReadClock(ctx) }`},
		},
	},
	{
		"the work of a leader ends by time, or the reason stands in endsNothing",
		func(p *project) (violations []string) {
			guarded, leads := map[string]bool{}, map[string]bool{}
			for _, s := range p.code {
				if s.isTest() || s.top() == "leader" || s.top() == "redisdb" {
					continue
				}
				guarded[s.dir()] = guarded[s.dir()] || guardUse.MatchString(s.text)
				leads[s.dir()] = leads[s.dir()] || leadUse.MatchString(s.text)
				calls := endsNothingCall.FindAllStringSubmatch(s.text, -1)
				if len(calls) != len(purposeUse.FindAllString(s.text, -1)) {
					violations = append(violations, s.path+": must name leader.EndsNothing in the call of leader.New")
				}
				for _, call := range calls {
					if endsNothing[s.path+":"+call[1]] == "" {
						violations = append(violations, fmt.Sprintf("%s: %s is not listed in endsNothing", s.path, call[1]))
					}
				}
			}
			for _, dir := range slices.Sorted(maps.Keys(leads)) {
				if leads[dir] && !guarded[dir] {
					violations = append(violations, dir+": leads what ends by time and reads the clock without ReadClockToEnd")
				}
			}
			return violations
		},
		map[string]map[string]string{
			"not listed": {"rooms/store.go": `package rooms; var w = leader.New(db, "more", leader.EndsNothing, do)`},
			"a variable": {"rooms/store.go": `package rooms; var p = leader.EndsNothing`},
			"no guard":   {"rooms/store.go": `package rooms; var w = leader.New(db, "more", leader.EndsByTime, do)`},
			"a lock":     {"rooms/store.go": `package rooms; func run() { db.RunAsLeader(ctx, lock, fence, lease, do) }`},
		},
	},
	{
		"what a node runs in the background is listed with what it ends",
		func(p *project) (violations []string) {
			for _, s := range p.code {
				if s.path != "cmd/parlor/run.go" {
					continue
				}
				found := map[string]bool{}
				for _, m := range runField.FindAllStringSubmatch(s.text, -1) {
					if found[m[1]] = true; backgroundWork[m[1]] == "" {
						violations = append(violations, s.path+": "+m[1]+" is not listed in backgroundWork")
					}
				}
				for name := range backgroundWork {
					if !found[name] {
						violations = append(violations, s.path+": "+name+" is listed in backgroundWork and does not run")
					}
				}
			}
			return violations
		},
		map[string]map[string]string{
			"a new one": {"cmd/parlor/run.go": `package main; func f() { run(n.rooms.Run, n.expirer.Run) }`},
		},
	},
}
