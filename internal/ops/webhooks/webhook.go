package webhooks

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/text"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
)

// MaxWebhooks bounds the webhooks of a game.
const MaxWebhooks = 8

const (
	maxURLBytes         = 2048
	maxDescriptionRunes = 200
	maxParkedKept       = 1000
	maxAttemptsKept     = 200
	bothSecretsFor      = 24 * time.Hour // after a rotation
)

// State says how the deliveries of a webhook go.
type State string

// The states.
const (
	OK       State = "ok"
	Failing  State = "failing"  // an event waits after a failure
	Disabled State = "disabled" // nothing is sent
)

// KindMoney has every entry of the ledger but those that an event of a room tells. The other kinds
// are those of package events.
const KindMoney = "money"

// Kinds are all kinds that a webhook can get.
var Kinds = []string{events.RoomsKind, events.SeatsKind, events.TournamentsKind, KindMoney}

// Webhook is one webhook as staff sees it. It has no secret.
type Webhook struct {
	ID          string    `json:"webhookId"`
	GameID      int64     `json:"gameId"`
	URL         string    `json:"url"`
	Kinds       []string  `json:"kinds"`
	Description string    `json:"description"`
	Active      bool      `json:"active"`
	CreatedAt   time.Time `json:"createdAt"`
	Version     int64     `json:"version"` // rises by one with every change, from 1

	State        State   `json:"state"`
	LagSeconds   float64 `json:"lagSeconds"`   // age of the oldest event that waits, 0 for none
	WaitingRooms int     `json:"waitingRooms"` // that have failed and are tried again
	Parked       int64   `json:"parked"`       // events that were given up after 24 h
	LastError    *string `json:"lastError"`    // of the last attempt that failed, or why it is disabled
}

// Created is a new webhook, or one with a new secret, which is shown only once.
type Created struct {
	Webhook
	Secret string `json:"secret"` // whsec_ and 32 bytes in base64
}

// Input is a new webhook.
type Input struct {
	URL         string   `json:"url" required:"true"`
	Kinds       []string `json:"kinds" required:"true"`
	Description string   `json:"description"`
	Active      *bool    `json:"active"` // absent: true
}

// PatchInput is a change of a webhook; an absent member stays as it is.
type PatchInput struct {
	Version     int64     `json:"version"` // that the caller read; 0 changes whichever is newest
	URL         *string   `json:"url"`
	Kinds       *[]string `json:"kinds"`
	Description *string   `json:"description"`
	Active      *bool     `json:"active"`
}

// Replay is where a webhook goes back to. One of its members is given.
type Replay struct {
	From   *time.Time        `json:"from"`      // every stored event since then
	After  map[string]string `json:"positions"` // for each feed the position that the next event follows
	Parked bool              `json:"parked"`    // what was given up
}

// Attempt is one attempt to deliver an event, or an event that was given up.
type Attempt struct {
	At           time.Time    `json:"at"`
	State        AttemptState `json:"state"`
	MessageID    string       `json:"id"` // webhook-id
	Type         string       `json:"type"`
	Room         string       `json:"roomId"` // "" for an event of none; a tournament has its id
	Try          int          `json:"attempt"`
	Status       int          `json:"status"`       // of the response, 0 for none
	Milliseconds int64        `json:"milliseconds"` // that it took
	Error        *string      `json:"error"`        // null after a success
	Response     string       `json:"response"`     // its first 200 bytes, as UTF-8
}

// AttemptState is what came of an attempt.
type AttemptState string

// The states of attempts.
const (
	Delivered   AttemptState = "delivered"
	Failed      AttemptState = "failed" // it is tried again
	Parked      AttemptState = "parked" // it was given up; Replay can send it
	TestAttempt AttemptState = "test"   // sent by staff, whatever came of it
)

// definition is a webhook as it is stored.
type definition struct {
	URL         string    `json:"url"`
	Kinds       []string  `json:"kinds"`
	Description string    `json:"description,omitzero"`
	Active      bool      `json:"active"`
	CreatedAt   time.Time `json:"createdAt"`
	Version     int64     `json:"version"`
	Disabled    string    `json:"disabled,omitzero"` // why a leader made it inactive

	Secret      string    `json:"secret"`          // encrypted
	Former      string    `json:"former,omitzero"` // encrypted; the one before Secret
	FormerUntil time.Time `json:"formerUntil,omitzero"`
}

func (d *definition) wants(kind string) bool { return slices.Contains(d.Kinds, kind) }

// check normalizes a definition and returns invalid_request with every faulty member.
func (s *Service) check(d *definition) error {
	var errs apierror.FieldErrors
	s.checkURL(&errs, d.URL)
	if len(d.Kinds) == 0 {
		errs.Add("kinds", "required", "must name a kind")
	}
	for i, kind := range d.Kinds {
		field := fmt.Sprintf("kinds[%d]", i)
		if !slices.Contains(Kinds, kind) {
			errs.Add(field, "unknown", "must be rooms, seats, tournaments or money")
		}
		if slices.Contains(d.Kinds[:i], kind) {
			errs.Add(field, "duplicate", "stands here twice")
		}
	}
	if d.Description != "" {
		description, err := text.CheckLine("description", d.Description, maxDescriptionRunes)
		errs.Merge(err)
		d.Description = description
	}
	return errs.Err()
}

func (s *Service) checkURL(errs *apierror.FieldErrors, address string) {
	const field = "url"
	u, err := url.Parse(address)
	switch {
	case address == "":
		errs.Add(field, "required", "is required")
		return
	case len(address) > maxURLBytes:
		errs.Add(field, "range", "must be at most 2,048 bytes")
		return
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		errs.Add(field, "format", "must be an address such as https://game.example/parlor, without a name or a fragment")
		return
	case u.Scheme != "https" && (u.Scheme != "http" || len(s.guard.Networks) == 0):
		errs.Add(field, "format", "must begin with https://")
		return
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !s.allows(u.Scheme)(ip) {
		errs.Add(field, "forbidden", "must be a public address")
	}
}

// allows returns which addresses may be connected to by a scheme.
func (s *Service) allows(scheme string) func(netip.Addr) bool {
	if scheme == "http" {
		return s.guard.Names
	}
	return s.guard.Allows
}

func encodeDefinition(d definition) (string, error) {
	doc, err := wire.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encode a webhook: %w", err)
	}
	return string(doc), nil
}
