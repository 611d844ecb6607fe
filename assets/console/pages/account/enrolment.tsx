/** The only page of people who must set up a second factor before anything else. */
import { useCallback, useEffect, useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Problem } from '../../components/notice.tsx';
import type { SecondFactors } from '../../data/administration-shapes.ts';
import { endSession, get } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';
import { type Person, setSession } from '../../data/session.ts';
import { Outside } from './outside.tsx';
import { FactorSections } from './sign-in-methods.tsx';

export function EnrolmentPage({ person }: { readonly person: Person }) {
  const [factors, setFactors] = useState<SecondFactors>();
  // Without the feed of changes, which the vault keeps from them.
  const load = useAction(async () => setFactors(await get<SecondFactors>('/second-factors')));
  const signOut = useAction(async () => {
    await endSession();
    setSession(null);
  });
  const done = useCallback(async () => setSession(await get<Person>('/session')), []);
  useEffect(() => void load.run(), []);
  const error = load.error ?? signOut.error;
  return (
    <Outside
      title="Set up a second factor"
      lead={`This vault requires one besides a password, ${person.name}. Add a passkey or set up an authenticator app to continue.`}
    >
      <div class="stack">
        {error && <Problem error={error} retry={load.run} />}
        {factors && <FactorSections factors={factors} reload={done} />}
        <Button look="quiet" onClick={() => void signOut.run()}>
          Sign out
        </Button>
      </div>
    </Outside>
  );
}
