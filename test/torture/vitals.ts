/**
 * Memory and descriptors of a vault in a trouble that lasts: what piles up while nothing can be done would take down more
 * than the trouble itself.
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
  /** Looks no more. */
  readonly stop: () => void;
  /** Throws where something rose until the end; what each was on average otherwise. */
  readonly means: () => { readonly memory: number; readonly descriptors: number };
};

/** Looks four times a second; of five seconds the least counts, when what can be given back has been. */
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
        const told = `${name} rises while the trouble lasts: ${JSON.stringify(samples[name])}`;
        assert.ok(isFlat(trend, watched[name]), told);
        return trend.mean;
      });
      return { memory: memory ?? 0, descriptors: descriptors ?? 0 };
    },
  };
}
