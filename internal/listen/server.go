package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
)

const (
	// headerTimeout and readTimeout bound how long a request may take to come,
	// its body included: 25 MB in half a minute is seven megabits a second.
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	// writeTimeout is readTimeout and some time for the answer.
	writeTimeout = readTimeout + 10*time.Second
	// idleTimeout lets senders use a connection again.
	idleTimeout = time.Minute
	// endTimeout is how long requests may go on when the daemon ends.
	endTimeout = 5 * time.Second

	// maxHeader bounds the header of a request in bytes.
	maxHeader = 16 << 10
	// maxConnections bounds those that are open at once. Each costs some 16 KiB.
	maxConnections = 256
)

// Config says where to listen, and what is there.
type Config struct {
	Address  string                  // host:port; port 0 = any that is free
	Handlers map[string]http.Handler // by path
	Logger   *slog.Logger            // nil = silent

	ReadTimeout time.Duration // of a whole request; 0 = half a minute
}

// Server listens at one address.
type Server struct {
	cfg      Config
	listener net.Listener
	http     *http.Server
}

// New takes the address. Connections wait until Run is called.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.ReadTimeout <= 0 {
		cfg.ReadTimeout = readTimeout
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.Address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: %w", cfg.Address, ErrInUse)
	}
	if err != nil {
		return nil, err // it names the address
	}
	s := &Server{cfg: cfg, listener: l}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: min(headerTimeout, cfg.ReadTimeout),
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// ErrInUse is for an address at which another program listens.
var ErrInUse = errors.New("the address is in use by another program")

// Address is where it listens, with the port that it got.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Run serves until the context ends, which is not an error, and lets what was
// begun by then come to its end.
func (s *Server) Run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(netutil.LimitListener(s.listener, maxConnections)) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", s.Address(), err)
	case <-ctx.Done():
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := s.http.Shutdown(wait); err != nil {
		_ = s.http.Close() // what is still there had its time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.Address(), err)
	}
	return nil
}

// ServeHTTP finds the handler of a path. The standard library's would redirect
// some of them, and a sender takes that for success.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	if h := s.cfg.Handlers[path]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "there is nothing at this path\n") // who has gone needs no answer
}
