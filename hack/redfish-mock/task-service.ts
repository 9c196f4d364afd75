import { toTime } from "../../src/runtime/time.ts";
import { success } from "./answer.ts";
import type { Answer, Body } from "./answer.ts";
import type { Endpoint } from "./endpoint.ts";
import { ENABLED, ROOT, link, resource } from "./resource.ts";
import type { Task } from "./tasks.ts";

// TaskService: the state of orders that were answered with 202 (DSP0266, "Asynchronous operations").

export const TASKS_PATH = `${ROOT}/TaskService/Tasks`;

export function taskServiceEndpoint(): Endpoint {
  return {
    get: () =>
      resource("TaskService", `${ROOT}/TaskService`, "TaskService", "Task Service", {
        ServiceEnabled: true,
        CompletedTaskOverWritePolicy: "Oldest",
        LifeCycleEventOnTaskStateChange: false,
        Status: ENABLED,
        Tasks: link(TASKS_PATH),
      }),
  };
}

export function taskEndpoint(task: Task): Endpoint {
  return { get: () => taskBody(task) };
}

/** The task monitor: it answers 202 while the task runs, and then with the answer of the operation. */
export function monitorEndpoint(task: Task): Endpoint {
  return { getAnswer: () => (task.endedAtMs === undefined ? taskAnswer(task) : success(204)) };
}

/** The answer of an operation that continues as a task. */
export function taskAnswer(task: Task): Answer {
  return success(202, taskBody(task), {
    location: monitorPath(task),
    "retry-after": String(task.retryAfterSeconds),
  });
}

function monitorPath(task: Task): string {
  return `${ROOT}/TaskService/TaskMonitors/${task.id}`;
}

function taskBody(task: Task): Body {
  const running = task.endedAtMs === undefined;
  return resource("Task", `${TASKS_PATH}/${task.id}`, task.id, `Task ${task.id}`, {
    TaskState: running ? "Running" : "Completed",
    TaskStatus: "OK",
    PercentComplete: running ? 0 : 100,
    StartTime: toTime(task.startedAtMs),
    ...(task.endedAtMs !== undefined && { EndTime: toTime(task.endedAtMs) }),
    ...(running && { TaskMonitor: monitorPath(task) }),
    Messages: [],
  });
}
