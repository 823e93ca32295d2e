package apierror_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

func TestEveryCodeIsSnakeCaseAndHasAStatusAndATitle(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, code := range apierror.Codes() {
		e, ok := apierror.Lookup(code)
		if !ok || !snake.MatchString(code) || e.Status < 400 || e.Status > 599 || e.Title == "" || e.Code != code {
			t.Errorf("%s: %+v", code, e)
		}
	}
}

// Clients depend on these: they may not be renamed or get another status.
func TestTheCodesOfTheContractExist(t *testing.T) {
	for status, codes := range map[int][]string{
		400: {"invalid_json", "invalid_request", "invalid_amount", "idempotency_key_required"},
		401: {"unauthenticated", "token_expired", "refresh_reused"},
		402: {"insufficient_funds"},
		403: {"forbidden", "not_host", "not_participant", "friends_only", "banned"},
		404: {"room_not_found", "user_not_found", "game_not_found", "token_not_found", "asset_not_found", "slot_not_found"},
		409: {
			"room_full", "room_closed", "already_started", "not_started", "not_enough_players",
			"version_conflict", "already_owned",
			"sold_out", "price_changed", "result_conflict", "request_in_progress",
		},
		413: {"payload_too_large"}, 415: {"unsupported_media_type"}, 422: {"idempotency_key_reused", "save_rejected"},
		429: {"rate_limited"}, 503: {"draining", "store_unavailable", "outcome_unknown"}, 500: {"internal"},
	} {
		for _, code := range codes {
			if e, ok := apierror.Lookup(code); !ok || e.Status != status {
				t.Errorf("%s: %+v", code, e)
			}
		}
	}
}

func TestAnErrorWithDetailsIsStillThatError(t *testing.T) {
	plain := apierror.InsufficientFunds
	detailed := plain.WithReason("%d are missing", 3).WithMember("available", 1).WithField("price", "range", "is too high")
	wrapped := fmt.Errorf("buy: %w", detailed)
	if !errors.Is(wrapped, plain) || errors.Is(wrapped, apierror.RoomFull) {
		t.Error("errors.Is does not compare codes")
	}
	if found, ok := apierror.As(wrapped); !ok || found.Detail != "3 are missing" || found.ExtraMembers["available"] != 1 ||
		len(found.FieldErrors) != 1 {
		t.Errorf("found %+v", found)
	}
	if plain.Detail != "" || plain.ExtraMembers != nil || plain.FieldErrors != nil {
		t.Errorf("the error itself was changed: %+v", plain)
	}
}
