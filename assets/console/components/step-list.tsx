/** A list of steps, each with the time since the first. */
import type { Step } from '../data/administration-shapes.ts';
import { durationText, exactTimeText } from '../text/time.ts';

export function StepList({ steps }: { readonly steps: readonly Step[] }) {
  const begin = Date.parse(steps[0]?.at ?? '');
  return (
    <ol class="step-list">
      {steps.map(({ at, text }, index) => (
        <li key={index}>
          <time class="quiet small" dateTime={at} title={exactTimeText(Date.parse(at))}>
            +{durationText(Date.parse(at) - begin)}
          </time>
          <span>{text}</span>
        </li>
      ))}
    </ol>
  );
}
