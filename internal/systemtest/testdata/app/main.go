// Program app is what the containers of the tests run: it answers on a port
// with its version, or with what ails it at /sick, notes each start in /data, or
// ends at once. With arguments it is the container's own check, or the shell that
// runs it.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		if os.Getenv("MODE") == "sick" {
			os.Exit(1)
		}
		return
	}
	version := os.Getenv("VERSION")
	if f, err := os.OpenFile("/data/starts", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
		fmt.Fprintln(f, version)
		f.Close()
	}
	if os.Getenv("MODE") == "end" {
		fmt.Println("nothing works here")
		time.Sleep(time.Second)
		os.Exit(3)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		os.Exit(0)
	}()
	l, err := net.Listen("tcp", ":8080")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		request := make([]byte, 4096)
		n, _ := c.Read(request)
		status := "200 OK"
		if strings.HasPrefix(string(request[:n]), "GET /sick ") {
			fmt.Println("a queue is stuck")
			status = "503 Service Unavailable"
		}
		fmt.Fprintf(c, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, len(version), version)
		c.Close()
	}
}
