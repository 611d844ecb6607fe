/** The certificate that has a name while the name is typed. */
import { useEffect, useState } from 'preact/hooks';
import { parseCertName } from '../../../src/base/cert-name.ts';
import { pathToName } from './name-taken.ts';
import { useResource } from './resource.ts';
import type { Certificate } from './shapes.ts';

/** The certificate of this name, undefined without one. Asks 300 ms after the last keystroke. */
export function useCertificateNamed(name: string): Certificate | undefined {
  const [settled, setSettled] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(name), 300);
    return () => clearTimeout(timer);
  }, [name]);
  const path = parseCertName(settled) === undefined ? undefined : pathToName(settled);
  const { data } = useResource<readonly Certificate[]>(path);
  const [found] = data ?? [];
  return settled === name && found?.name === name ? found : undefined;
}
