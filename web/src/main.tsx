import { render } from 'preact';
import './theme';
import './style/base.css';
import './style/layout.css';
import './style/parts.css';
import './style/charts.css';
import './style/lists.css';
import './style/answers.css';
import { Dashboard } from './dashboard/dashboard';
import { readDocument } from './document';
import { Frame } from './parts/frame';
import { Problem } from './parts/card';
import { Report } from './report';

function Page({ text }: { text: string }) {
  const reading = readDocument(text);
  if (reading.kind === 'none') return <Dashboard />;
  if (reading.kind === 'doc') return <Report doc={reading.doc} />;
  return (
    <Frame>
      <div class="title">
        <h1>Report</h1>
      </div>
      <Problem title="The document in this page cannot be read.">{reading.why}</Problem>
    </Frame>
  );
}

render(<Page text={document.getElementById('mayfly-document')?.textContent ?? ''} />, document.getElementById('app')!);
const heading = document.querySelector('h1')?.textContent;
if (heading) document.title = `${heading} · mayfly`;
