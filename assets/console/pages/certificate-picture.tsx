/** When certificates expire, as a picture that can be hidden: lifetimes of a few, or a histogram of many. */
import { useMemo, useState } from 'preact/hooks';
import { groupOf } from '../certificates/certificate-health.ts';
import { hidePicture, isPictureHidden } from '../certificates/hidden-picture.ts';
import { maxLives } from '../certificates/timeline-layout.ts';
import { Button } from '../components/button.tsx';
import type { Certificates } from '../data/growing-list.ts';
import type { Certificate } from '../data/shapes.ts';
import { ExpiryHistogram } from './expiry-histogram.tsx';
import { Timeline } from './timeline.tsx';

export function CertificatePicture({ items, isWhole }: Certificates) {
  const [isHidden, setHidden] = useState(isPictureHidden);
  const expiries = useMemo(() => items.flatMap(expiryOf), [items]);
  if (expiries.length === 0) return null;
  const isHistogram = expiries.length > maxLives;
  const toggle = () => {
    hidePicture(!isHidden);
    setHidden(!isHidden);
  };
  return (
    <section class="picture">
      <div class="picture-head">
        <h2>
          {isHistogram ? 'Expiries per week' : 'Lifetimes'}
          {!isWhole && <small> so far</small>}
        </h2>
        <Button look="quiet" onClick={toggle}>
          {isHidden ? 'Show picture' : 'Hide picture'}
        </Button>
      </div>
      {!isHidden &&
        (isHistogram ? <ExpiryHistogram expiries={expiries} /> : <Timeline certificates={items} />)}
    </section>
  );
}

function expiryOf(certificate: Certificate) {
  const { current_version: version } = certificate;
  return version === null ? [] : [{ to: Date.parse(version.not_after), group: groupOf(certificate) }];
}
