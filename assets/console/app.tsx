/** Which page is shown, and to whom: setup and sign-in to everybody, the rest to whoever is signed in. */
import { useEffect, useState } from 'preact/hooks';
import { ApiError, get } from './api.ts';
import { Button } from './components/button.tsx';
import { Empty } from './components/empty.tsx';
import { Problem } from './components/notice.tsx';
import { Page } from './components/page.tsx';
import { pages } from './page-table.tsx';
import { SetupPage } from './pages/setup.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { matchPath } from './path-pattern.ts';
import { navigate, usePath } from './router.ts';
import { learnSession, mayBeSignedIn, type Person, useSession } from './session.ts';
import { Shell } from './shell.tsx';

export function App() {
  const path = usePath();
  const session = useSession();
  const [error, setError] = useState<ApiError>();
  const ask = async () => {
    setError(undefined);
    try {
      learnSession(await get<Person>('/session'));
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 401) learnSession(null);
      else if (thrown instanceof ApiError) setError(thrown);
      else throw thrown;
    }
  };
  // Once, at the beginning.
  useEffect(() => {
    if (path === '/setup') return;
    if (mayBeSignedIn()) void ask();
    else learnSession(null);
  }, []);
  const isOutside = path === '/setup' || path === '/sign-in';
  useEffect(() => {
    if (session === null && !isOutside) {
      const back = location.pathname + location.search;
      navigate(back === '/' ? '/sign-in' : `/sign-in?to=${encodeURIComponent(back)}`, 'replace');
    }
    if (session && isOutside && path === '/sign-in') navigate(wayBack(), 'replace');
  }, [session, isOutside, path]);

  if (path === '/setup') return <SetupPage />;
  if (error) {
    return (
      <main class="outside">
        <Problem error={error} retry={ask} />
      </main>
    );
  }
  if (path === '/sign-in' && session === null) return <SignInPage />;
  if (!session) return <main class="outside" aria-busy="true" />;
  return (
    <Shell person={session} path={path}>
      <Inside path={path} />
    </Shell>
  );
}

function Inside({ path }: { readonly path: string }) {
  for (const { path: pattern, page: Found } of pages) {
    const params = matchPath(pattern, path);
    if (params !== undefined) return <Found key={path} params={params} />;
  }
  return (
    <Page key={path} title="Nothing here">
      <Empty
        title="There is no page at this address"
        actions={
          <Button look="primary" onClick={() => navigate('/')}>
            Go to the certificates
          </Button>
        }
      >
        <p>It may have been mistyped, or what it showed is gone.</p>
      </Empty>
    </Page>
  );
}

/** Where the person was before they had to sign in; only ever a page of the console. */
function wayBack(): string {
  const to = new URLSearchParams(location.search).get('to') ?? '/';
  const url = URL.parse(to, location.origin);
  return url?.origin === location.origin && to.startsWith('/') && url.pathname !== '/sign-in'
    ? url.pathname + url.search
    : '/';
}
