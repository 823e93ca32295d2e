package handlers

import (
	"net/http"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
)

func (s *Server) createWebhook(r *request, game int64, in *webhooks.Input) (response, error) {
	w, err := s.Webhooks.Create(r.ctx(), r.caller, game, *in)
	return createdResponse(&w), err
}

func (s *Server) listWebhooks(r *request, game int64) (response, error) {
	list, err := s.Webhooks.List(r.ctx(), r.caller, game)
	return okResponse(newPage(list, 0)), err
}

func (s *Server) getWebhook(r *request, game int64) (response, error) {
	w, err := s.Webhooks.Get(r.ctx(), r.caller, game, r.Param("webhookId"))
	return okResponse(&w), err
}

func (s *Server) patchWebhook(r *request, game int64, in *webhooks.PatchInput) (response, error) {
	if in.Version < 0 {
		return response{}, apierror.InvalidRequest.WithField("version", "range", "must not be negative")
	}
	w, err := s.Webhooks.Patch(r.ctx(), r.caller, game, r.Param("webhookId"), *in)
	return okResponse(&w), err
}

func (s *Server) deleteWebhook(r *request, game int64) (response, error) {
	return response{status: http.StatusNoContent}, s.Webhooks.Delete(r.ctx(), r.caller, game, r.Param("webhookId"))
}

// testWebhook may take longer than other requests: the target has 10 seconds.
func (s *Server) testWebhook(r *request, game int64) (response, error) {
	attempt, err := s.Webhooks.Test(r.clientCtx(), r.caller, game, r.Param("webhookId"))
	return okResponse(&attempt), err
}

func (s *Server) rotateWebhookSecret(r *request, game int64) (response, error) {
	w, err := s.Webhooks.RotateSecret(r.ctx(), r.caller, game, r.Param("webhookId"))
	return okResponse(&w), err
}

func (s *Server) replayWebhook(r *request, game int64, in *webhooks.Replay) (response, error) {
	w, err := s.Webhooks.Replay(r.ctx(), r.caller, game, r.Param("webhookId"), *in)
	return okResponse(&w), err
}

func (s *Server) listWebhookDeliveries(r *request, game int64) (response, error) {
	q := r.query()
	state := webhooks.AttemptState(q.text("state"))
	switch state {
	case "", webhooks.Delivered, webhooks.Failed, webhooks.Parked, webhooks.TestAttempt:
	default:
		q.addError("state", "unknown", "must be delivered, failed, parked or test")
	}
	if err := q.err(); err != nil {
		return response{}, err
	}
	list, err := s.Webhooks.Deliveries(r.ctx(), r.caller, game, r.Param("webhookId"), state)
	return okResponse(newPage(list, 0)), err
}

// webhookChange has the members of a webhook that staff can change.
type webhookChange struct {
	GameID      int64    `json:"gameId"`
	URL         string   `json:"url"`
	Kinds       []string `json:"kinds"`
	Description string   `json:"description"`
	Active      bool     `json:"active"`
}

func newWebhookChange(w webhooks.Webhook) *webhookChange {
	return &webhookChange{w.GameID, w.URL, w.Kinds, w.Description, w.Active}
}

// describeWebhookWrite returns what a write changed of a webhook, without its secrets.
func (w *staffWrite) describeWebhookWrite(body any) (before, after any) {
	was, _ := w.before.(*webhooks.Webhook)
	switch b := body.(type) {
	case *webhooks.Created:
		if was == nil {
			return nil, newWebhookChange(b.Webhook)
		}
		return nil, map[string]any{"secret": "rotated"}
	case *webhooks.Webhook:
		if in, ok := w.input.(*webhooks.Replay); ok {
			return nil, map[string]any{"replayed": in}
		}
		if was != nil {
			return changedMembers(newWebhookChange(*was), newWebhookChange(*b))
		}
		return nil, newWebhookChange(*b)
	case *webhooks.Attempt:
		return nil, map[string]any{"status": b.Status}
	case nil:
		if was != nil {
			return newWebhookChange(*was), map[string]any{"deleted": true}
		}
	}
	return nil, nil
}
