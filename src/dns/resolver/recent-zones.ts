/** Caches the zones of an account for a minute: a certificate with many names looks them up repeatedly. */
import { minute } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

export class RecentZones<Zone> {
  readonly #world: Pick<World, 'elapsed'>;
  readonly #known = new Map<string, { readonly at: number; readonly zones: readonly Zone[] }>();

  constructor(world: Pick<World, 'elapsed'>) {
    this.#world = world;
  }

  /** The value cached under this key less than a minute ago. */
  get(key: string): readonly Zone[] | undefined {
    const known = this.#known.get(key);
    return known !== undefined && this.#world.elapsed() - known.at < minute ? known.zones : undefined;
  }

  set(key: string, zones: readonly Zone[]): void {
    if (this.get(key) === undefined) this.#known.set(key, { at: this.#world.elapsed(), zones });
  }
}
