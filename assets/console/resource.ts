/** What a page shows of the server, and what it sends there: loading, failing, and staying current. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, getAll } from './api.ts';
import { type Change, useLive } from './live.ts';

export type Resource<T> = {
  /** What was loaded last; it stays while it is loaded anew, and when that fails. */
  readonly data: T | undefined;
  readonly error: ApiError | undefined;
  readonly reload: () => Promise<void>;
};

/** The answer to GET for a path after `/api/v1`, loaded again when something changes. `undefined` loads nothing. */
export function useResource<T>(path: string | undefined): Resource<T> {
  return useLoaded(path, get<T>);
}

/** A whole list, all its pages. */
export function useList<T>(path: string | undefined): Resource<readonly T[]> {
  return useLoaded<readonly T[]>(path, getAll<T>);
}

/** Loads from a path; `show` is for what is there before the rest: it counts only until something was loaded whole. */
type Load<T> = (path: string, show: (part: T) => void) => Promise<T>;

/** `matters` says which changes on the server it is loaded again for; all of them where it is left out. */
export function useLoaded<T>(
  path: string | undefined,
  load: Load<T>,
  matters: (change: Change) => boolean = () => true,
): Resource<T> {
  const [state, setState] = useState<{ path?: string; data?: T; error?: ApiError }>({});
  const wanted = useRef(path);
  const loader = useRef(load);
  const running = useRef<Promise<void> | undefined>(undefined);
  const whole = useRef<string>(undefined);
  const pace = useRef(paced());
  wanted.current = path;
  loader.current = load;
  const reload = useCallback(async () => {
    // One at a time: what changed meanwhile is asked for after it, once for all who wait.
    const before = running.current;
    await before;
    if (running.current !== before && running.current !== undefined) return running.current;
    const asked = wanted.current;
    if (asked === undefined) return;
    const show = (data: T) => {
      if (wanted.current === asked && whole.current !== asked) setState({ path: asked, data });
    };
    running.current = loader
      .current(asked, show)
      .then(
        (data) => {
          whole.current = asked;
          return { path: asked, data };
        },
        (error: unknown) => ({ path: asked, error: asApiError(error) }),
      )
      .then((result) => {
        if (wanted.current !== asked) return;
        setState((before) => (before.path === asked ? { ...withoutError(before), ...result } : result));
      });
    await running.current;
  }, []);
  useEffect(() => {
    // What the path before left behind.
    wanted.current = path;
    running.current = undefined;
    void reload();
    return () => {
      wanted.current = undefined;
    };
  }, [path, reload]);
  useLive((change) => {
    if (matters(change)) pace.current(reload);
  });
  const isCurrent = state.path === path;
  return { data: isCurrent ? state.data : undefined, error: isCurrent ? state.error : undefined, reload };
}

/** Does it at most a tenth of the time: what takes long to load is not loaded again every second. */
function paced(): (act: () => Promise<void>) => void {
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
  /** Does it, unless it is being done; true where it succeeded. */
  readonly run: (...args: Arguments) => Promise<boolean>;
  readonly isBusy: boolean;
  readonly error: ApiError | undefined;
  readonly forget: () => void;
};

/** Something that a person asks the vault to do, with what came of it. */
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
    'The console has a fault; reload the page, and report it if it comes back.',
  );
}
