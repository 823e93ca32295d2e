package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/ops/config"
	"golang.org/x/sync/errgroup"
)

// companions are what runs beside the node until it stops.
type companions = []func(context.Context) error

// run serves until ctx ends or something fails, drains, and returns when every goroutine has ended.
// It calls started with the public address once it serves requests there, and runs the function
// that started returns.
func (n *node) run(ctx context.Context, started func(public string) companions) error {
	defer startGCPacing(n.settings, gcLoadInterval)()
	public, err := n.listenPublic()
	if err != nil {
		return fmt.Errorf("PARLOR_LISTEN: %w", err)
	}
	internal, err := net.Listen("tcp", n.settings.InternalListenAddress)
	if errors.Is(err, errAddressTaken) && !n.settings.IsSet("internal-listen") {
		// A second node on this machine, without a setting for the address of its metrics.
		n.log.Warn(
			"the internal address is taken, another port is used; set PARLOR_INTERNAL_LISTEN",
			"taken",
			n.settings.InternalListenAddress,
		)
		internal, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		_ = public.Close()
		return fmt.Errorf("PARLOR_INTERNAL_LISTEN: %w", err)
	}

	// Background work continues after ctx has ended: running requests still need it.
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	group, workCtx := errgroup.WithContext(work)
	publicServer, internalServer := newHTTPServer(n.apiServer, n.log), newHTTPServer(n.apiServer.InternalHandler(), n.log)
	internalServer.WriteTimeout = profileTimeout
	handlers.SetConnContext(publicServer)
	group.Go(func() error { return ignoreStop(handlers.Serve(publicServer, public)) })
	group.Go(func() error { return ignoreStop(internalServer.Serve(internal)) })
	if n.settings.ReadyListenAddress != "" {
		group.Go(func() error { return n.serveWhenReady(workCtx, publicServer) })
	}
	group.Go(func() error { return ignoreStop(n.hub.Run(workCtx)) })
	group.Go(func() error { return ignoreStop(n.monitor.Run(workCtx)) })
	group.Go(func() error { return n.runStoreWork(workCtx, public.Addr()) })
	group.Go(func() error { n.runReloads(workCtx); return nil })

	release, commit := version()
	n.log.Info("serving", "listen", public.Addr().String(), "internal", internal.Addr().String(),
		"store", string(n.db.Kind()), "durability", n.settings.Durability, "version", release, "commit", commit)
	companionCtx, stopCompanions := context.WithCancel(workCtx)
	defer stopCompanions()
	context.AfterFunc(ctx, stopCompanions) // before the node drains, so that none is refused
	select {
	case <-n.monitor.Started(): // else the first requests of others would fail
		for _, run := range started(public.Addr().String()) {
			group.Go(func() error { return ignoreStop(run(companionCtx)) })
		}
	case <-ctx.Done():
	case <-workCtx.Done():
	}
	select {
	case <-ctx.Done():
	case <-workCtx.Done(): // something failed
	}
	notifySystemd(n.log, daemon.SdNotifyStopping)
	n.drain(workCtx, publicServer, internalServer)
	stopWork()
	err = group.Wait()
	n.log.Info("stopped")
	return err
}

// portAttempts bounds the ports that a node for development tries.
const portAttempts = 20

// listenPublic listens at the public address, or at the next free port where a node for development
// finds it taken and no setting names it.
func (n *node) listenPublic() (net.Listener, error) {
	address := n.settings.ListenAddress
	listener, err := net.Listen("tcp", address)
	if n.mode != config.ModeDev || n.settings.IsSet("listen") {
		return listener, err
	}
	host, port, _ := net.SplitHostPort(address) // checked by config
	first, _ := strconv.Atoi(port)
	for next := first + 1; errors.Is(err, errAddressTaken) && next < first+portAttempts; next++ {
		listener, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(next)))
	}
	return listener, err
}

// serveWhenReady opens the second public address once the node can serve. Until then the system
// refuses connections, and a load balancer tries another node. It would not repeat a request that
// got 503.
func (n *node) serveWhenReady(ctx context.Context, server *http.Server) error {
	select {
	case <-n.monitor.Started():
	case <-ctx.Done():
		return nil
	}
	listener, err := net.Listen("tcp", n.settings.ReadyListenAddress)
	if err != nil {
		return err
	}
	n.log.Info("open for balancers", "listen", listener.Addr().String())
	return ignoreStop(handlers.Serve(server, listener))
}

// runStoreWork runs the background work in the store, as soon as that has met the requirements.
func (n *node) runStoreWork(ctx context.Context, listen net.Addr) error {
	select {
	case <-n.monitor.Started():
		n.log.Info("ready", "store", string(n.db.Kind()))
		notifySystemd(n.log, daemon.SdNotifyReady)
	case <-ctx.Done():
		return nil
	}
	if err := n.makeFirstGame(ctx); err != nil {
		return ignoreStop(err)
	}
	n.nodes.Advertise(n.ownAddress(ctx, listen))
	group, ctx := errgroup.WithContext(ctx)
	work := []func(context.Context) error{
		n.history.Run, n.rooms.Run, n.wallet.Run, n.moneyHalt.Run, n.limiter.Run, n.auth.Run, n.nodes.Run,
		n.presence.Run, n.usage.Run, n.activity.Run, n.boards.Run, n.tours.Run, n.apiServer.Run, n.trail.Run,
		n.servers.Run, n.calls.Run, n.webhooks.Run,
	}
	if n.archiver != nil {
		work = append(work, n.archiver.Run)
	}
	for _, run := range work {
		group.Go(func() error { return ignoreStop(run(ctx)) })
	}
	return group.Wait()
}

// drain reports not ready so that balancers stop sending requests, closes the sockets, then lets
// running requests end. It skips the delay when workCtx has ended: something failed.
func (n *node) drain(workCtx context.Context, servers ...*http.Server) {
	s := n.current.Load()
	n.presence.Drain()
	n.apiServer.Drain()
	n.log.Info("draining", "delay", s.DrainDelay.String(), "timeout", s.DrainTimeout.String(),
		"sockets", n.hub.Stats().Clients)
	defer n.logDrain()()
	select {
	case <-time.After(s.DrainDelay):
	case <-workCtx.Done():
	}
	n.apiServer.RefuseSockets()
	shutdownCtx, cancel := context.WithTimeout(context.Background(), s.DrainTimeout)
	defer cancel()
	if err := n.hub.Drain(shutdownCtx); err != nil {
		n.log.Warn("sockets did not close in time", "cause", err)
	}
	for _, s := range servers {
		if err := s.Shutdown(shutdownCtx); err != nil {
			n.log.Warn("requests did not end in time", "cause", err)
			_ = s.Close()
		}
	}
}

// logDrain logs each second how many sockets are left, until stop is called.
func (n *node) logDrain() (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				n.log.Info("draining", "sockets", n.hub.Stats().Clients)
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended); <-done }
}

// Limits of a connection. A profile from the internal listener takes as long as it was requested
// for.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 90 * time.Second
	profileTimeout = 5 * time.Minute
	maxHeaderBytes = 16 << 10
)

func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // errors of clients, such as bad TLS
	}
}

// ignoreStop returns the error of something that ran until it was stopped, nil when it only was
// stopped.
func ignoreStop(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
