package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// run serves until ctx ends or something fails, drains, and comes back when every goroutine has ended. started is told the
// public address once requests are answered there.
func (n *node) run(ctx context.Context, started func(public string)) error {
	public, err := net.Listen("tcp", n.settings.Listen)
	if err != nil {
		return err
	}
	internal, err := net.Listen("tcp", n.settings.InternalListen)
	if errors.Is(err, syscall.EADDRINUSE) && !n.settings.Given("internal-listen") {
		// A second node on this machine; nobody said where its metrics are expected.
		n.log.Warn("the internal address is taken, another port is used; set PARLOR_INTERNAL_LISTEN", "taken", n.settings.InternalListen)
		internal, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		_ = public.Close()
		return err
	}

	// Work outlives the signal that ends it: requests under way still need what runs beside them.
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, failing := errgroup.WithContext(work)
	front, back := server(n.edge, n.log), server(n.edge.Internal(), n.log)
	back.WriteTimeout = profileTimeout
	group.Go(func() error { return ended(front.Serve(public)) })
	group.Go(func() error { return ended(back.Serve(internal)) })
	group.Go(func() error { return ended(n.rooms.Run(failing)) })
	group.Go(func() error { return ended(n.hub.Run(failing)) })

	release, commit := version()
	n.log.Info("serving", "listen", public.Addr().String(), "internal", internal.Addr().String(), "store", string(n.db.Kind()),
		"durability", n.settings.Durability, "version", release, "commit", commit)
	started(public.Addr().String())
	select {
	case <-ctx.Done():
	case <-failing.Done():
	}
	n.drain(failing, front, back)
	end()
	err = group.Wait()
	n.log.Info("stopped")
	return err
}

// drain lets balancers see that the node goes, sends its sockets elsewhere, then lets requests under way end.
func (n *node) drain(failing context.Context, servers ...*http.Server) {
	n.edge.Drain()
	n.log.Info("draining", "delay", n.settings.DrainDelay, "timeout", n.settings.DrainTimeout)
	select {
	case <-time.After(n.settings.DrainDelay):
	case <-failing.Done():
	}
	patience, cancel := context.WithTimeout(context.Background(), n.settings.DrainTimeout)
	defer cancel()
	if err := n.hub.Drain(patience); err != nil {
		n.log.Warn("sockets were cut off", "cause", err)
	}
	for _, s := range servers {
		if err := s.Shutdown(patience); err != nil {
			n.log.Warn("requests were cut off", "cause", err)
			_ = s.Close()
		}
	}
}

// Bounds of a connection. Profiles of the internal listener take as long as they are asked to.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 90 * time.Second
	profileTimeout = 5 * time.Minute
	maxHeaderBytes = 16 << 10
)

func server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // what broken clients do is not news
	}
}

// ended is the error of something that ran until it was told to stop: nil when that is all that happened.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
