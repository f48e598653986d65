package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/nomad/nomad/structs"
	"github.com/hashicorp/nomad/plugins/drivers"
)

func (c *client) obey(wanted order) (told, error) {
	switch wanted.Do {
	case "start":
		return c.start(wanted)
	case "wait":
		return c.wait(wanted.ID)
	case "stop":
		timeout := time.Duration(wanted.TimeoutMS) * time.Millisecond
		return told{}, c.driver.StopTask(wanted.ID, timeout, wanted.Signal)
	case "signal":
		return told{}, c.driver.SignalTask(wanted.ID, wanted.Signal)
	case "destroy":
		os.Remove(c.stored(wanted.ID))
		delete(c.handles, wanted.ID)
		return told{}, c.driver.DestroyTask(wanted.ID, wanted.Force)
	case "inspect":
		status, err := c.driver.InspectTask(wanted.ID)
		if err != nil {
			return told{}, err
		}
		return told{Text: string(status.State), Extra: status.DriverAttributes}, nil
	case "exec":
		result, err := c.driver.ExecTask(wanted.ID, wanted.Command, timeout)
		if err != nil {
			return told{}, err
		}
		return told{Text: string(result.Stdout), Code: result.ExitResult.ExitCode}, nil
	case "terminal":
		return c.terminal(wanted)
	case "stats":
		return c.stats(wanted.ID)
	case "revive":
		return told{}, c.revive()
	}
	return told{}, fmt.Errorf("there is no order %q", wanted.Do)
}

// start does what comes before a task in a client, as far as this driver sees it, and starts it.
func (c *client) start(wanted order) (told, error) {
	config, err := c.prepare(wanted)
	if err != nil {
		return told{}, err
	}
	handle, _, err := c.driver.StartTask(config)
	if err != nil {
		return told{}, err
	}
	return told{}, c.store(handle)
}

func (c *client) prepare(wanted order) (*drivers.TaskConfig, error) {
	allocation := strings.Split(wanted.ID, "/")[0]
	alloc := c.path("alloc", allocation)
	task := filepath.Join(alloc, wanted.Name)
	logs := filepath.Join(alloc, "alloc", "logs")
	for _, directory := range []string{logs, filepath.Join(task, "local"), filepath.Join(task, "secrets"), filepath.Join(task, "tmp")} {
		if err := os.MkdirAll(directory, 0o777); err != nil {
			return nil, err
		}
	}
	pipe := func(name string) (string, error) {
		path := filepath.Join(logs, fmt.Sprintf(".%s.%s.fifo", wanted.Name, name))
		if err := syscall.Mkfifo(path, 0o600); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
		return path, nil
	}
	stdout, err := pipe("stdout")
	if err != nil {
		return nil, err
	}
	stderr, err := pipe("stderr")
	if err != nil {
		return nil, err
	}
	memory := wanted.MemoryMB
	if memory == 0 {
		memory = 300
	}
	config := &drivers.TaskConfig{
		ID: wanted.ID, JobName: "job", JobID: "job", TaskGroupName: "group", Name: wanted.Name, Namespace: "default",
		NodeName: "node", AllocID: allocation, AllocDir: alloc, User: wanted.User,
		Env: map[string]string{
			"GREETING": "good evening", "NOMAD_ALLOC_ID": allocation, "NOMAD_TASK_NAME": wanted.Name,
			"NOMAD_TASK_DIR": filepath.Join(task, "local"), "PATH": os.Getenv("PATH"),
		},
		StdoutPath: stdout, StderrPath: stderr,
		Resources: &drivers.Resources{
			NomadResources: &structs.AllocatedTaskResources{
				Cpu: structs.AllocatedCpuResources{CpuShares: 100}, Memory: structs.AllocatedMemoryResources{MemoryMB: memory},
			},
			LinuxResources: &drivers.LinuxResources{
				CPUShares: 100, MemoryLimitBytes: memory << 20, PercentTicks: 0.05, CpusetCgroupPath: wanted.Cgroup,
			},
		},
	}
	return config, config.EncodeConcreteDriverConfig(map[string]interface{}{
		"command": "/bin/sh", "args": []string{"-c", wanted.Script},
	})
}

func (c *client) wait(id string) (told, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	results, err := c.driver.WaitTask(ctx, id)
	if err != nil {
		return told{}, err
	}
	result := <-results
	if result == nil {
		return told{}, errors.New("no result")
	}
	return told{Code: result.ExitCode, Signal: result.Signal, OOM: result.OOMKilled}, result.Err
}

func (c *client) stats(id string) (told, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	reports, err := c.driver.TaskStats(ctx, id, 100*time.Millisecond)
	if err != nil {
		return told{}, err
	}
	report := <-reports
	if report == nil || report.ResourceUsage == nil || report.ResourceUsage.MemoryStats == nil {
		return told{}, errors.New("no figures")
	}
	memory := report.ResourceUsage.MemoryStats
	return told{Memory: memory.RSS, Text: strings.Join(memory.Measured, " "), Code: len(report.Pids)}, nil
}
