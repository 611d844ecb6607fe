/**
 * Watches memory and descriptors of a vault during a long fault, because a leak would do more damage than the fault
 * itself.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { residentMegabytes, type Scene } from './fault-scene.ts';
import { type Allowance, isFlat, type Sample, trendOf } from './soak-trend.ts';

const everyMs = 250;
const windowSeconds = 5;

const watched = {
  memory: { least: 8, share: 0.05 },
  descriptors: { least: 4, share: 0.1 },
} as const satisfies Record<string, Allowance>;

export type Vitals = {
  /** Stops watching. */
  readonly stop: () => void;
  /** Throws if a value rose until the end. Otherwise returns the averages. */
  readonly means: () => { readonly memory: number; readonly descriptors: number };
};

/** Samples four times per second and uses the minimum of every five seconds, after garbage collection. */
export function watchVitals(scene: Pick<Scene, 'server'>): Vitals {
  const samples: Record<keyof typeof watched, Sample[]> = { memory: [], descriptors: [] };
  const began = performance.now();
  const look = () => {
    const at = Math.floor((performance.now() - began) / 1000 / windowSeconds) * windowSeconds;
    const now = {
      memory: residentMegabytes(scene),
      descriptors: readdirSync(`/proc/${scene.server.pid}/fd`).length,
    };
    for (const name of ['memory', 'descriptors'] as const) {
      const last = samples[name].at(-1);
      if (last?.at !== at) samples[name].push({ at, value: now[name] });
      else samples[name].splice(-1, 1, { at, value: Math.min(last.value, now[name]) });
    }
  };
  const timer = setInterval(look, everyMs);
  return {
    stop: () => clearInterval(timer),
    means: () => {
      const [memory, descriptors] = (['memory', 'descriptors'] as const).map((name) => {
        const trend = trendOf(samples[name]);
        const told = `${name} rises during the fault: ${JSON.stringify(samples[name])}`;
        assert.ok(isFlat(trend, watched[name]), told);
        return trend.mean;
      });
      return { memory: memory ?? 0, descriptors: descriptors ?? 0 };
    },
  };
}
