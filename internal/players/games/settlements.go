package games

import (
	"fmt"
	"slices"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// Settlement says who reports the result of a room; package rooms calls it SettledBy.
type Settlement string

// The settlements of rooms.
const (
	SettledByServer    Settlement = "server"    // the game's server
	SettledByConsensus Settlement = "consensus" // its players, who must agree
)

// settlementsBefore are the settlements of a game that was stored before games had this setting.
// They allow all, because an upgrade must not forbid rooms that players open already.
func settlementsBefore() []Settlement { return []Settlement{SettledByServer, SettledByConsensus} }

func checkSettlements(errs *apierror.FieldErrors, list []Settlement) {
	if len(list) == 0 {
		errs.Add("settings.settlements", "required", "must name at least one")
	}
	for i, one := range list {
		field := fmt.Sprintf("settings.settlements[%d]", i)
		switch {
		case one != SettledByServer && one != SettledByConsensus:
			errs.Add(field, "unknown", "must be server or consensus")
		case slices.Contains(list[:i], one):
			errs.Add(field, "duplicate", "stands here twice")
		}
	}
}
