/** Enrollments in plain words. */
import type { Enrollment } from '../../data/administration-shapes.ts';

/** "3 of 20". */
export function usesText({ uses, max_uses }: Pick<Enrollment, 'uses' | 'max_uses'>): string {
  return `${uses.toLocaleString()} of ${max_uses.toLocaleString()}`;
}

/** "any", "web, team=db". */
export function certificatesText({
  certificates,
  certificate_labels: labels,
}: Pick<Enrollment, 'certificates' | 'certificate_labels'>): string {
  return certificates[0] === '*' ? 'any' : [...certificates, ...labels].join(', ');
}
