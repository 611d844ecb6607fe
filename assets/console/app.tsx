/** The root component: shows the setup and sign-in pages without a session, and all other pages with one. */
import { useEffect, useState } from 'preact/hooks';
import { Button } from './components/button.tsx';
import { Empty } from './components/empty.tsx';
import { Notice, Problem } from './components/notice.tsx';
import { Page } from './components/page.tsx';
import { ApiError, get } from './data/api.ts';
import { mayBeSignedIn, type Person, setTabSession, useRefusal, useSession } from './data/session.ts';
import { type PageEntry, pages } from './page-table.tsx';
import { EnrolmentPage } from './pages/account/enrolment.tsx';
import { SetupPage } from './pages/account/setup.tsx';
import { SignInPage } from './pages/account/sign-in.tsx';
import { matchPath } from './path-pattern.ts';
import { navigate, type PageProps, usePath } from './router.ts';
import { Shell } from './shell.tsx';

/** No page: the vault sends people here after signing in by OpenID Connect, and the console sends them on. */
const hop = '/signed-in';

export function App() {
  const path = usePath();
  const session = useSession();
  const [error, setError] = useState<ApiError>();
  const loadSession = async () => {
    setError(undefined);
    try {
      setTabSession(await get<Person>('/session'));
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 401) setTabSession(null);
      else if (thrown instanceof ApiError) setError(thrown);
      else throw thrown;
    }
  };
  // Only when the console loads.
  useEffect(() => {
    if (path === '/setup') return;
    if (mayBeSignedIn() || path === hop) void loadSession();
    else setTabSession(null);
  }, []);
  const isOutside = path === '/setup' || path === '/sign-in';
  useEffect(() => {
    if (session === null && !isOutside) {
      const back = location.pathname + location.search;
      navigate(back === '/' ? '/sign-in' : `/sign-in?to=${encodeURIComponent(back)}`, 'replace');
    }
    if (session && (path === '/sign-in' || path === hop)) navigate(returnPath(), 'replace');
  }, [session, isOutside, path]);

  if (path === '/setup') return <SetupPage />;
  if (error) {
    return (
      <main class="outside">
        <Problem error={error} retry={loadSession} />
      </main>
    );
  }
  if (path === '/sign-in' && session === null) return <SignInPage />;
  if (session?.second_factor_needed) return <EnrolmentPage person={session} />;
  if (!session) return <main class="outside" aria-busy="true" />;
  return (
    <Shell person={session} path={path}>
      <Inside path={path} />
    </Shell>
  );
}

function Inside({ path }: { readonly path: string }) {
  for (const entry of pages) {
    const params = matchPath(entry.path, path);
    if (params !== undefined) return <Allowed key={path} entry={entry} params={params} />;
  }
  return (
    <Page key={path} title="Page not found">
      <Empty
        title="No page at this address"
        actions={
          <Button look="primary" onClick={() => navigate('/')}>
            View certificates
          </Button>
        }
      >
        <p>Check the address. The object may have been deleted.</p>
      </Empty>
    </Page>
  );
}

/** The page, or why the person may not open it. */
function Allowed({ entry, params }: { readonly entry: PageEntry } & PageProps) {
  const refusal = useRefusal(entry.needs);
  const { page: Found } = entry;
  if (refusal === undefined) return <Found params={params} />;
  return (
    <Page title={entry.label ?? 'Page not open to you'}>
      <Notice title="This page is not open to you">{refusal}</Notice>
    </Page>
  );
}

/**
 * The page that the person asked for before signing in. Accepts only pages of the console, to prevent open redirects.
 */
function returnPath(): string {
  const to = new URLSearchParams(location.search).get('to') ?? '/';
  const url = URL.parse(to, location.origin);
  return url?.origin === location.origin && to.startsWith('/') && url.pathname !== '/sign-in'
    ? url.pathname + url.search
    : '/';
}
