/** Hooks for data from the server and for actions: loading, errors and live updates. */
import { useCallback, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, getAll } from './api.ts';
import { type Change, useLive } from './live.ts';

export type Resource<T> = {
  /** The data of the last successful load; kept during a reload and after a failed one. */
  readonly data: T | undefined;
  readonly error: ApiError | undefined;
  readonly reload: () => Promise<void>;
};

/** The response to GET for a path after `/api/v1`, reloaded after changes. `undefined` loads nothing. */
export function useResource<T>(path: string | undefined): Resource<T> {
  return useLoaded(path, get<T>);
}

/** A whole list, all its pages. */
export function useList<T>(path: string | undefined): Resource<readonly T[]> {
  return useLoaded<readonly T[]>(path, getAll<T>);
}

/** Loads from a path. `show` renders a partial result, and is ignored once a whole result was loaded. */
type Load<T> = (path: string, show: (part: T) => void) => Promise<T>;

/** Changes that cause no reload by default, because few pages show them. */
const rare = ['deployments', 'endpoints'];

/** `matters` selects the changes that cause a reload. */
export function useLoaded<T>(
  path: string | undefined,
  load: Load<T>,
  matters: (change: Change) => boolean = ({ kinds }) => kinds?.some((kind) => !rare.includes(kind)) ?? true,
): Resource<T> {
  const [state, setState] = useState<{ path?: string; data?: T; error?: ApiError }>({});
  const wanted = useRef(path);
  const loader = useRef(load);
  const running = useRef<Promise<void> | undefined>(undefined);
  const whole = useRef<string>(undefined);
  const throttle = useRef(throttled());
  wanted.current = path;
  loader.current = load;
  const reload = useCallback(async () => {
    // One request at a time. Callers that arrive during a request share one more request after it.
    const before = running.current;
    await before;
    if (running.current !== before && running.current !== undefined) return running.current;
    const requested = wanted.current;
    if (requested === undefined) return;
    const show = (data: T) => {
      if (wanted.current === requested && whole.current !== requested) setState({ path: requested, data });
    };
    running.current = loader
      .current(requested, show)
      .then(
        (data) => {
          whole.current = requested;
          return { path: requested, data };
        },
        (error: unknown) => ({ path: requested, error: asApiError(error) }),
      )
      .then((result) => {
        if (wanted.current !== requested) return;
        setState((before) => (before.path === requested ? { ...withoutError(before), ...result } : result));
      });
    await running.current;
  }, []);
  // Not useEffect, which ends only after the next paint: a live update before that would load what the person left.
  useLayoutEffect(() => {
    // Discard the state of the previous path.
    wanted.current = path;
    running.current = undefined;
    void reload();
    return () => {
      wanted.current = undefined;
    };
  }, [path, reload]);
  useLive((change) => {
    if (matters(change)) throttle.current(reload);
  });
  const isCurrent = state.path === path;
  return { data: isCurrent ? state.data : undefined, error: isCurrent ? state.error : undefined, reload };
}

/** Limits reloads to a tenth of the time, so that a slow resource is not reloaded every second. */
function throttled(): (act: () => Promise<void>) => void {
  let next = 0;
  let waiting = false;
  return (act) => {
    if (waiting) return;
    waiting = true;
    setTimeout(
      async () => {
        const began = Date.now();
        waiting = false;
        await act();
        next = Date.now() + 9 * (Date.now() - began);
      },
      Math.max(0, next - Date.now()),
    );
  };
}

function withoutError<T extends { error?: unknown }>({ error: _, ...rest }: T): Omit<T, 'error'> {
  return rest;
}

export type Action<Arguments extends readonly unknown[]> = {
  /** Runs the action unless it is already running. Resolves to true if it succeeded. */
  readonly run: (...args: Arguments) => Promise<boolean>;
  readonly isBusy: boolean;
  readonly error: ApiError | undefined;
  readonly forget: () => void;
};

/** An action that a person starts, with its progress and error. */
export function useAction<Arguments extends readonly unknown[]>(
  act: (...args: Arguments) => Promise<unknown>,
): Action<Arguments> {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const isRunning = useRef(false);
  return {
    isBusy,
    error,
    forget: () => setError(undefined),
    run: async (...args) => {
      if (isRunning.current) return false;
      isRunning.current = true;
      setBusy(true);
      setError(undefined);
      try {
        await act(...args);
        return true;
      } catch (thrown) {
        setError(asApiError(thrown));
        return false;
      } finally {
        isRunning.current = false;
        setBusy(false);
      }
    },
  };
}

function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  console.error(error);
  return new ApiError(
    0,
    'console',
    'Unexpected error in the console. Reload the page, and report the problem if it happens again.',
  );
}
