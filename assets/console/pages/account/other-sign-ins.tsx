/** The ways to sign in besides a password: a passkey, if anyone has one, and an OpenID Connect provider, if set up. */
import { useEffect, useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { Problem } from '../../components/notice.tsx';
import { WebLink } from '../../components/web-link.tsx';
import { ApiError, get } from '../../data/api.ts';
import { canUsePasskeys, signInByPasskey } from '../../data/passkeys.ts';
import { useAction } from '../../data/resource.ts';
import { setSession } from '../../data/session.ts';
import { OidcSignIn } from './oidc-sign-in.tsx';

type SignInMethods = {
  readonly oidc: { readonly provider: string; readonly public_url: string } | null;
  readonly passkeys: { readonly public_url: string } | null;
  readonly setup_needed: boolean;
};

/**
 * The ways to sign in, once loaded. The password form works without, and shows an error of its own if the vault is
 * down.
 */
export function useSignInMethods(): SignInMethods | undefined {
  const [data, setData] = useState<SignInMethods>();
  // Once, and without the feed of changes, which needs a session.
  useEffect(() => {
    get<SignInMethods>('/sign-in-methods').then(setData, (thrown: unknown) => {
      if (!(thrown instanceof ApiError)) throw thrown;
    });
  }, []);
  return data;
}

/** Nothing if there is only the password. */
export function OtherSignIns({ methods: { oidc, passkeys } }: { readonly methods: SignInMethods }) {
  return (
    <>
      {passkeys && <PasskeySignIn publicUrl={passkeys.public_url} />}
      {oidc && <OidcSignIn oidc={oidc} />}
    </>
  );
}

function PasskeySignIn({ publicUrl }: { readonly publicUrl: string }) {
  if (publicUrl !== location.origin) {
    return <WebLink to={`${publicUrl}/sign-in`} label={`Sign in with a passkey at ${publicUrl}`} />;
  }
  return canUsePasskeys() ? <PasskeyButton /> : null;
}

export function PasskeyButton({ look = 'plain' }: { readonly look?: 'plain' | 'primary' }) {
  const { run, isBusy, error } = useAction(async () => setSession(await signInByPasskey()));
  return (
    <div class="stack">
      {error && <Problem error={error} />}
      <Button look={look} isBusy={isBusy} onClick={() => void run()}>
        Sign in with a passkey
      </Button>
    </div>
  );
}
