/** The frame of every page after sign-in: navigation, account menu and theme. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { Menu } from './components/menu.tsx';
import { Problem } from './components/notice.tsx';
import { endSession } from './data/api.ts';
import { useAction } from './data/resource.ts';
import { type Person, setSession, useRefusal } from './data/session.ts';
import { loadLaterPages } from './later.tsx';
import { type PageEntry, pages } from './page-table.tsx';
import { navigate } from './router.ts';
import { chooseTheme, savedTheme, type Theme } from './theme.ts';

const groups = ['vault', 'sources', 'people'] as const;

export function Shell({
  person,
  path,
  children,
}: {
  readonly person: Person;
  readonly path: string;
  readonly children: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  const navigation = useId();
  // Close the menu after navigation.
  useEffect(() => setOpen(false), [path]);
  // After the first page has asked for its data. A failure is shown when a later page is opened.
  useEffect(() => {
    const timer = setTimeout(() => loadLaterPages().catch(() => undefined), 1000);
    return () => clearTimeout(timer);
  }, []);
  const { run: signOut, error } = useAction(async () => {
    await endSession();
    navigate('/sign-in');
    setSession(null);
  });
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to main content
      </a>
      <header class="bar">
        <a class="brand" href="/">
          <Shield /> Certificate Vault
        </a>
        <button
          type="button"
          class="button button-quiet bar-toggle"
          aria-expanded={isOpen}
          aria-controls={navigation}
          onClick={() => setOpen(!isOpen)}
        >
          Menu
        </button>
      </header>
      <nav id={navigation} class={isOpen ? 'navigation is-open' : 'navigation'} aria-label="Pages">
        <div class="navigation-pages">
          {groups.map((group) => (
            <ul key={group}>
              {pages
                .filter((page) => page.label !== undefined && page.group === group)
                .filter(({ isShown }) => isShown?.(person) !== false)
                .map((page) => (
                  <li key={page.path}>
                    <PageLink page={page} path={path} />
                  </li>
                ))}
            </ul>
          ))}
        </div>
        <div class="navigation-foot">
          <ThemeChoice />
          <Menu
            label={`${person.name}: sessions, password, sign out`}
            items={[
              { label: 'Your sessions', href: '/account/sessions' },
              ...(person.sign_in === 'password'
                ? [
                    { label: 'Sign-in methods', href: '/account/sign-in-methods' },
                    { label: 'Change password', href: '/account/password' },
                  ]
                : []),
              { label: 'Sign out', onSelect: () => void signOut() },
            ]}
          >
            <span class="initial" aria-hidden="true" data-initial={[...person.name][0]?.toUpperCase()} />
            <span class="person-name">
              {person.name}
              {person.role !== 'admin' && (
                <span class="beneath">{[person.role, ...person.reach].join(' · ')}</span>
              )}
            </span>
          </Menu>
        </div>
      </nav>
      <main id="main" class="main" tabIndex={-1}>
        {error && <Problem error={error} />}
        {children}
      </main>
    </div>
  );
}

/** A page that the person may not open says why, when it is opened, too. */
function PageLink({ page, path }: { readonly page: PageEntry; readonly path: string }) {
  const refusal = useRefusal(page.needs);
  return (
    <a
      href={page.path}
      aria-current={isWithin(path, page.path) ? 'page' : undefined}
      {...(refusal !== undefined && { class: 'is-refused', title: refusal })}
    >
      {page.label}
    </a>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState(savedTheme);
  return (
    <select
      class="input theme-choice"
      aria-label="Theme"
      value={theme}
      onChange={({ currentTarget }) => {
        chooseTheme(currentTarget.value as Theme);
        setTheme(currentTarget.value as Theme);
      }}
    >
      <option value="system">System theme</option>
      <option value="light">Light theme</option>
      <option value="dark">Dark theme</option>
    </select>
  );
}

export function Shield() {
  return (
    <svg class="shield" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M16 6l8 3v6.5c0 5-3.3 8.6-8 10.5-4.7-1.9-8-5.500-8-10.500V9z" />
      <path d="M12.500 15.800l2.600 2.600 4.600-5" />
    </svg>
  );
}

function isWithin(path: string, page: string): boolean {
  return path === page || path.startsWith(`${page}/`) || (path === '/' && page === '/certificates');
}
