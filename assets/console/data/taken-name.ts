/** Checks while a name is typed whether a certificate already has it. */
import { useEffect, useState } from 'preact/hooks';
import { parseCertName } from '../../../src/base/cert-name.ts';
import { pathToName } from './name-taken.ts';
import { useResource } from './resource.ts';
import type { Certificate } from './shapes.ts';

/** The error if the name is taken, else undefined. Checks 300 ms after the last keystroke. */
export function useTakenName(name: string): string | undefined {
  const [settled, setSettled] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(name), 300);
    return () => clearTimeout(timer);
  }, [name]);
  const path = parseCertName(settled) === undefined ? undefined : pathToName(settled);
  const { data } = useResource<readonly Certificate[]>(path);
  const isTaken = settled === name && data?.[0]?.name === name;
  return isTaken ? `a certificate named "${name}" already exists` : undefined;
}
