package events

import (
	"fmt"
	"strings"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// tournament.opened: version|status.
func (b *builder) appendTournamentOpened() {
	version := b.next()
	b.text("status", b.next())
	b.integer("version", version)
}

// tournament.joined: version|entrants|fees|decimals|profile.
func (b *builder) appendTournamentJoined() {
	version, entrants, fees, decimals := b.next(), b.next(), b.next(), b.next()
	b.document("user", b.last())
	b.integer("entrants", entrants)
	b.amount("fees", "feesAmount", fees, decimals)
	b.integer("version", version)
}

// tournament.left: version|user|reason|entrants|fees|decimals.
func (b *builder) appendTournamentLeft() {
	version := b.next()
	b.integer("userId", b.next())
	b.text("reason", b.next())
	b.integer("entrants", b.next())
	fees, decimals := b.next(), b.next()
	b.amount("fees", "feesAmount", fees, decimals)
	b.integer("version", version)
}

// tournament.checked_in: version|user|checked in.
func (b *builder) appendTournamentCheckedIn() {
	version := b.next()
	b.integer("userId", b.next())
	b.integer("checkedIn", b.next())
	b.integer("version", version)
}

// tournament.started: version|players.
func (b *builder) appendTournamentStarted() {
	version := b.next()
	b.integer("players", b.next())
	b.integer("version", version)
}

// tournament.round_started: version|round|matches|ms of the deadline.
func (b *builder) appendTournamentRoundStarted() {
	version := b.next()
	b.integer("round", b.next())
	b.integer("matches", b.next())
	b.name("deadline")
	b.json = wire.AppendTime(b.json, b.parseTime(b.next()))
	b.integer("version", version)
}

// tournament.match_ready: version|match|room|attempt|ms of the deadline|players.
func (b *builder) appendTournamentMatchReady() {
	version := b.next()
	b.text("matchId", b.next())
	b.text("roomId", b.next())
	b.integer("attempt", b.next())
	b.name("deadline")
	b.json = wire.AppendTime(b.json, b.parseTime(b.next()))
	b.matchPlayers(b.next())
	b.integer("version", version)
}

// tournament.match_decided: version|match|winner|reason|players. The winner is empty for nobody.
func (b *builder) appendTournamentMatchDecided() {
	version := b.next()
	b.text("matchId", b.next())
	if winner := b.next(); winner == "" {
		b.literal("winnerId", "null")
	} else {
		b.integer("winnerId", winner)
	}
	b.text("reason", b.next())
	b.matchPlayers(b.next())
	b.integer("version", version)
}

// matchPlayers appends players, "<user>:<seed>" with commas between them.
func (b *builder) matchPlayers(players string) {
	b.name("players")
	b.json = append(b.json, '[')
	if players != "" {
		for one := range strings.SplitSeq(players, ",") {
			user, seed, _ := strings.Cut(one, ":")
			if !isInteger(user) || !isInteger(seed) {
				b.keepError(fmt.Errorf("a player of %d bytes has no user or no seed", len(one)))
			}
			b.json = append(append(appendComma(b.json), `{"userId":`...), user...)
			b.json = append(append(append(b.json, `,"seed":`...), seed...), '}')
		}
	}
	b.json = append(b.json, ']')
}

// tournament.settled: version|decimals|pot|rake|placements, as those of a room.
func (b *builder) appendTournamentSettled() {
	version, decimals := b.next(), b.next()
	b.amount("pot", "potAmount", b.next(), decimals)
	b.amount("rake", "rakeAmount", b.next(), decimals)
	b.name("payouts")
	var err error
	b.json, err = AppendPayouts(b.json, b.next(), decimals)
	b.keepError(err)
	b.integer("version", version)
}

// tournament.cancelled: version|reason.
func (b *builder) appendTournamentCancelled() {
	version := b.next()
	b.text("reason", b.next())
	b.integer("version", version)
}

// user.match: tournament|match|room|ms of the deadline.
func (b *builder) appendUserMatch() {
	b.integer("tournamentId", b.next())
	b.text("matchId", b.next())
	b.text("roomId", b.next())
	b.name("deadline")
	b.json = wire.AppendTime(b.json, b.parseTime(b.next()))
}

// user.prize: place|asset|quantity|owned, behind the values of user.balance, whose change and ref
// are the prize and its source. Asset, quantity and owned are empty for units alone.
func (b *builder) appendUserPrize() {
	b.text("source", b.balance.ref)
	b.integer("place", b.next())
	if b.balance.delta == "0" {
		b.literal("tokenId", "null")
	} else {
		b.text("tokenId", b.balance.token)
	}
	b.amount("prize", "amount", b.balance.delta, b.balance.decimals)
	for _, name := range []string{"assetId", "quantity", "owned"} {
		if value := b.next(); value == "" {
			b.literal(name, "null")
		} else {
			b.integer(name, value)
		}
	}
}
