/** Says while a name is written that it belongs to another certificate. */
import { useEffect, useState } from 'preact/hooks';
import { parseCertName } from '../../../src/base/cert-name.ts';
import { pathToName } from '../name-taken.ts';
import { useResource } from '../resource.ts';
import type { Certificate } from '../shapes.ts';

/** A sentence where it does; asked when the person has stopped typing. */
export function useTakenName(name: string): string | undefined {
  const [settled, setSettled] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(name), 300);
    return () => clearTimeout(timer);
  }, [name]);
  const path = parseCertName(settled) === undefined ? undefined : pathToName(settled);
  const { data } = useResource<readonly Certificate[]>(path);
  const isTaken = settled === name && data?.[0]?.name === name;
  return isTaken ? `a certificate called "${name}" exists already` : undefined;
}
