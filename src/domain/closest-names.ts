/** Suggests existing names for an unknown one. */
import { distance } from 'fastest-levenshtein';

/** Up to three candidates that differ from `name` in at most a third of its letters, the closest first. */
export function closestNames(name: string, candidates: readonly string[]): string[] {
  const most = Math.max(1, Math.floor(name.length / 3));
  return candidates
    .map((candidate) => ({ candidate, edits: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ edits }) => edits <= most)
    .sort((a, b) => a.edits - b.edits)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** A question with the closest candidates, or `otherwise` if none is close. */
export function didYouMean(name: string, candidates: readonly string[], otherwise: string): string {
  const close = closestNames(name, candidates).map((candidate) => `"${candidate}"`);
  return close.length > 0 ? `Did you mean ${close.join(' or ')}?` : otherwise;
}
