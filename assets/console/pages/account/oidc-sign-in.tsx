/** Signing in by OpenID Connect: the button beside the password, and why the last attempt failed. */
import { Button } from '../../components/button.tsx';
import { Notice, Problem } from '../../components/notice.tsx';
import { WebLink } from '../../components/web-link.tsx';
import { post } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';

/** By the code in the address, which only selects one of these texts. */
const refusals: Readonly<Record<string, readonly [title: string, text: string]>> = {
  expired: [
    'Sign-in expired',
    'It took more than ten minutes, was begun in another browser or tab, or was already used. Sign in again.',
  ],
  provider_unreachable: [
    'Identity provider unreachable',
    'Try again in a moment, or sign in with the password of a local administrator.',
  ],
  declined: ['Sign-in canceled', 'The identity provider did not confirm who you are. Sign in again.'],
  invalid: [
    'Sign-in failed',
    'The response of the identity provider is not valid. An administrator finds the reason in the audit log.',
  ],
  not_permitted: [
    'No access to this vault',
    'The identity provider knows you, but none of your groups has a role here. Ask an administrator of the vault for access.',
  ],
  name_taken: [
    'Name already taken',
    'Another administrator of the vault has your name. Ask an administrator to remove that account if it is your own.',
  ],
  tested: ['Test finished', 'The command on the vault host shows the result. You are not signed in.'],
  rate_limited: ['Too many attempts', 'Wait a minute, then sign in again.'],
};

export function OidcRefused() {
  const code = new URLSearchParams(location.search).get('refused') ?? '';
  const known = Object.hasOwn(refusals, code) ? refusals[code] : undefined;
  if (known === undefined) return null;
  const [title, text] = known;
  return (
    <Notice tone={code === 'tested' ? 'info' : 'bad'} title={title}>
      {text}
    </Notice>
  );
}

export function OidcSignIn({
  oidc,
}: {
  readonly oidc: { readonly provider: string; readonly public_url: string };
}) {
  const { run, isBusy, error } = useAction(async () => {
    const { url } = await post<{ readonly url: string }>('/session/oidc');
    location.assign(url);
  });
  const label = `Sign in with ${oidc.provider}`;
  return (
    <div class="stack">
      {error && <Problem error={error} />}
      {oidc.public_url === location.origin ? (
        <Button isBusy={isBusy} onClick={() => void run()}>
          {label}
        </Button>
      ) : (
        <WebLink to={`${oidc.public_url}/sign-in`} label={`${label} at ${oidc.public_url}`} />
      )}
    </div>
  );
}
