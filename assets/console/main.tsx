/** The entry point of the console. */
import { render } from 'preact';
import { App } from './app.tsx';
import { startRouter } from './router.ts';

startRouter();
const root = document.getElementById('console');
if (root !== null) render(<App />, root);
