/** A long list, newest first, loaded one page at a time. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, getPage } from './api.ts';
import { useLive } from './live.ts';

export type Feed<T> = {
  readonly items: readonly T[] | undefined;
  readonly error: ApiError | undefined;
  /** Whether older items exist. */
  readonly hasMore: boolean;
  readonly isBusy: boolean;
  readonly more: () => Promise<void>;
  readonly reload: () => Promise<void>;
};

const pageSize = 50;

type State<T> = { path?: string; items?: T[]; next?: string | undefined; error?: ApiError };

/** `path` may have a query. After a change, as many items are reloaded as were shown before. */
export function useFeed<T>(path: string): Feed<T> {
  const [state, setState] = useState<State<T>>({});
  const [isBusy, setBusy] = useState(false);
  const latest = useRef(path);
  latest.current = path;
  const shown = useRef(0);
  const load = useCallback(async (from: string, before: readonly T[]) => {
    const current = latest.current;
    setBusy(true);
    const result: State<T> = await getPage<T>(from).then(
      ({ items, next }) => ({ path: current, items: [...before, ...items], next }),
      (error: unknown) => ({ error: error as ApiError }),
    );
    setBusy(false);
    if (latest.current !== current) return;
    if (result.items !== undefined) shown.current = result.items.length;
    setState((now) =>
      result.error === undefined || now.path !== current
        ? { path: current, ...result }
        : { ...now, ...result },
    );
  }, []);
  const reload = useCallback(() => {
    const limit = Math.min(1000, Math.max(pageSize, shown.current));
    return load(withLimit(latest.current, limit), []);
  }, [load]);
  useEffect(() => {
    shown.current = 0;
    void reload();
  }, [path, reload]);
  useLive(() => void reload());
  const isCurrent = state.path === path;
  const next = isCurrent ? state.next : undefined;
  return {
    items: isCurrent ? state.items : undefined,
    error: isCurrent ? state.error : undefined,
    hasMore: next !== undefined,
    isBusy,
    more: async () => {
      if (next === undefined) return;
      await load(withLimit(next, pageSize), state.items ?? []);
    },
    reload,
  };
}

function withLimit(path: string, limit: number): string {
  const [start = '', search = ''] = path.split('?');
  const query = new URLSearchParams(search);
  query.set('limit', String(limit));
  return `${start}?${query}`;
}
