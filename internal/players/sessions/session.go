package sessions

import (
	"strconv"
	"strings"
	"time"
)

// MaxTokenAge bounds how long a token is accepted after its session began to use it. Longer, an end
// would be forgotten before the tokens that it concerns.
const MaxTokenAge = 24 * time.Hour

// The close codes of an ended session's sockets.
const (
	CloseEnded     = 4001 // sign in again
	CloseForbidden = 4403 // do not come back
)

// Session is a sign-in, or the use of an outside token; access tokens are issued for it.
type Session struct {
	UserID      int64     // the player
	GameID      int64     // the player's game
	Family      string    // of refresh tokens; "" when the token came with none
	StartedAt   time.Time // by the store's clock
	ServerKeyID string    // the server key of the game that made the session, or ""
	Issuer      string    // the outside issuer that vouches for the player, or ""

	// AcceptedEpoch is the last epoch of the store that an operator had accepted when the token was
	// made, 0 for none. A store that was accepted later may have the number of this player for another
	// one.
	AcceptedEpoch int64
}

// subject names the sessions that an end concerns. Every session has a few.
type subject struct {
	kind   subjectKind
	number int64  // user id of a family or user, game id of an issuer or server key
	text   string // family, issuer or id of the server key
}

type subjectKind byte

const (
	familySubject    subjectKind = 's'
	userSubject      subjectKind = 'u'
	issuerSubject    subjectKind = 'i'
	serverKeySubject subjectKind = 'k'

	suspensionSubject subjectKind = 'x' // as userSubject, but it may be lifted
)

// String returns the subject as the store has it: "s:7:<family>".
func (s subject) String() string {
	return string(s.kind) + ":" + strconv.FormatInt(s.number, 10) + ":" + s.text
}

// parseSubject decodes what String returned.
func parseSubject(text string) (subject, bool) {
	kind, rest, _ := strings.Cut(text, ":")
	number, name, ok := strings.Cut(rest, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || len(kind) != 1 {
		return subject{}, false
	}
	return subject{subjectKind(kind[0]), n, name}, true
}

// end is the stored end of the sessions of a subject.
type end struct {
	subject  subject
	beganBy  time.Time // only sessions that had begun by then are over; zero: all
	code     int       // close code
	until    time.Time // of a suspension: when it passes; zero: never
	recorded time.Time // by the store's clock
}

// holds reports whether an end is not a suspension that has passed or was lifted.
func (e end) holds() bool {
	return e.subject.kind != suspensionSubject || e.until.IsZero() || time.Now().Before(e.until)
}

// concerns reports whether a session of the end's subject is over by it.
func (e end) concerns(s Session) bool {
	return e.holds() && (e.beganBy.IsZero() || !s.StartedAt.After(e.beganBy))
}

// subjects returns what a session can be ended by; unused ones are zero.
func (s Session) subjects() [5]subject {
	list := [5]subject{{userSubject, s.UserID, ""}}
	list[4] = subject{suspensionSubject, s.UserID, ""}
	if s.Family != "" {
		list[1] = subject{familySubject, s.UserID, s.Family}
	}
	if s.Issuer != "" {
		list[2] = subject{issuerSubject, s.GameID, s.Issuer}
	}
	if s.ServerKeyID != "" {
		list[3] = subject{serverKeySubject, s.GameID, s.ServerKeyID}
	}
	return list
}
