/**
 * Finds routes by path: one walk along the segments of the path finds its routes and parameters, regardless of the
 * number of routes. Case and trailing slashes matter.
 */

import { detached } from '../../base/detached.ts';
import { boundedCache } from '../../domain/cache/bounded-cache.ts';
import type { Method, Protocol, Route } from './route.ts';

/** The routes of one path. */
export type PathRoutes = {
  readonly path: string;
  readonly byMethod: ReadonlyMap<Method, Route>;
  /** Undefined for the API. */
  readonly protocol: Protocol | undefined;
};

export type FoundRoutes = {
  readonly routes: PathRoutes;
  /** The decoded path parameters. */
  readonly params: Readonly<Record<string, string>>;
};

/** A position in the tree of path segments. */
type Node = {
  readonly fixed: Map<string, Node>;
  free: { readonly name: string; readonly node: Node } | undefined;
  ends: (PathRoutes & { readonly byMethod: Map<Method, Route> }) | undefined;
};

/** Clients request the same few paths repeatedly. */
const maxCachedPaths = 2000;
const maxCachedPathLength = 200;

export class RouteTable {
  readonly #root: Node = emptyNode();
  readonly #found = boundedCache<string, FoundRoutes>(maxCachedPaths);

  /** Throws if two routes have the same path and method, or name the same path parameter differently. */
  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
  }

  /** The routes for the decodable path of a request target, ignoring its query. Fixed segments take precedence. */
  find(path: string): FoundRoutes | undefined {
    // Keeping the order of use would cost more than the lookup; without it, the oldest path is forgotten first.
    const known = this.#found.peek(path);
    if (known !== undefined) return known;
    const params: Record<string, string> = {};
    const routes = walk(this.#root, path.split('/'), 1, params);
    if (routes === undefined) return undefined;
    const found = { routes, params };
    if (path.length <= maxCachedPathLength) this.#found.set(detached(path), found);
    return found;
  }

  #add(route: Route): void {
    let node = this.#root;
    for (const part of route.path.split('/').slice(1)) node = childFor(node, part, route);
    node.ends ??= { path: route.path, byMethod: new Map(), protocol: route.protocol };
    if (node.ends.byMethod.has(route.method)) throw new Error(`two routes for ${route.method} ${route.path}`);
    node.ends.byMethod.set(route.method, route);
  }
}

function emptyNode(): Node {
  return { fixed: new Map(), free: undefined, ends: undefined };
}

function childFor(node: Node, part: string, { path }: Route): Node {
  if (!part.startsWith('{')) {
    const child = node.fixed.get(part) ?? emptyNode();
    node.fixed.set(part, child);
    return child;
  }
  const name = part.slice(1, -1);
  node.free ??= { name, node: emptyNode() };
  if (node.free.name !== name)
    throw new Error(`{${name}} of ${path} is called {${node.free.name}} elsewhere`);
  return node.free.node;
}

function walk(
  node: Node,
  parts: readonly string[],
  at: number,
  params: Record<string, string>,
): PathRoutes | undefined {
  const part = parts[at];
  if (part === undefined) return node.ends;
  const fixed = node.fixed.get(part);
  const found = fixed && walk(fixed, parts, at + 1, params);
  if (found !== undefined || node.free === undefined || part === '') return found;
  const ends = walk(node.free.node, parts, at + 1, params);
  if (ends !== undefined) params[node.free.name] = part.includes('%') ? decodeURIComponent(part) : part;
  return ends;
}
