package main

import (
	"context"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/prometheus/client_golang/prometheus"
)

// newWebhooks returns the webhooks of a node, and adds them to its metrics.
func (n *node) newWebhooks(metrics *prometheus.Registry) *webhooks.Service {
	s := webhooks.New(n.db, webhooks.Deps{
		SetActiveCount: n.games.SetActiveWebhooks, Ledger: n.ledgers, Trail: n.trail, Log: n.log,
		EncodeEntry: func(ctx context.Context, gameID int64, e ledger.Entry) ([]byte, error) {
			view, err := n.wallet.ViewEntry(ctx, e)
			if err != nil {
				return nil, err
			}
			return wire.Marshal(wallet.ExportedEntry{GameID: gameID, Entry: view})
		},
	}, webhooks.Options{
		SigningKeys: revealKeys(n.settings.SigningKeys), Networks: n.settings.WebhookNetworks,
		FreeShards: n.settings.RoomShards,
	})
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parlor_webhook_lag_seconds",
		Help: "Age of the oldest event that a webhook of any game waits for; 0 on the nodes that do not deliver.",
	}, func() float64 { return s.Lag().Seconds() }))
	metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "parlor_webhook_parked_total", Help: "Events that this node gave up after 24 hours; staff can send them again.",
	}, func() float64 { return float64(s.CountParked()) }))
	for _, outcome := range webhooks.Outcomes {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "parlor_webhook_deliveries_total",
			Help:        "Requests of this node to webhooks, by what came of them.",
			ConstLabels: prometheus.Labels{"outcome": string(outcome)},
		}, func() float64 { return float64(s.CountRequests(outcome)) }))
	}
	return s
}
