package apierror_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/parlor-games/parlor/internal/apierror"
)

func TestEveryWordIsSnakeCaseAndHasAStatusAndATitle(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, word := range apierror.Codes() {
		r, ok := apierror.Lookup(word)
		if !ok || !snake.MatchString(word) || r.Status < 400 || r.Status > 599 || r.Title == "" || r.Code != word {
			t.Errorf("%s: %+v", word, r)
		}
	}
}

// The contract names these; they may not be renamed or get another status.
func TestTheContractsWordsStand(t *testing.T) {
	for status, words := range map[int][]string{
		400: {"invalid_json", "invalid_request", "invalid_amount", "idempotency_key_required"},
		401: {"unauthenticated", "token_expired", "refresh_reused"},
		402: {"insufficient_funds"},
		403: {"forbidden", "not_host", "not_participant", "friends_only", "banned"},
		404: {"room_not_found", "user_not_found", "game_not_found", "token_not_found", "asset_not_found", "slot_not_found"},
		409: {
			"room_full", "room_closed", "already_started", "not_started", "not_enough_players", "version_conflict", "already_owned",
			"sold_out", "price_changed", "result_conflict", "request_in_progress",
		},
		413: {"payload_too_large"}, 415: {"unsupported_media_type"}, 422: {"idempotency_key_reused", "save_rejected"},
		429: {"rate_limited"}, 503: {"draining", "store_unavailable", "outcome_unknown"}, 500: {"internal"},
	} {
		for _, word := range words {
			if r, ok := apierror.Lookup(word); !ok || r.Status != status {
				t.Errorf("%s: %+v", word, r)
			}
		}
	}
}

func TestARefusalWithDetailsIsStillThatRefusal(t *testing.T) {
	plain := apierror.InsufficientFunds
	detailed := plain.WithReason("%d are missing", 3).WithMember("available", 1).WithField("price", "range", "is too high")
	wrapped := fmt.Errorf("buy: %w", detailed)
	if !errors.Is(wrapped, plain) || errors.Is(wrapped, apierror.RoomFull) {
		t.Error("errors.Is does not compare words")
	}
	if found, ok := apierror.As(wrapped); !ok || found.Detail != "3 are missing" || found.Members["available"] != 1 || len(found.FieldErrors) != 1 {
		t.Errorf("found %+v", found)
	}
	if plain.Detail != "" || plain.Members != nil || plain.FieldErrors != nil {
		t.Errorf("the word itself was changed: %+v", plain)
	}
}
