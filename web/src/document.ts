import type { Doc, View } from './types';

export type Reading = { kind: 'none' } | { kind: 'doc'; doc: Doc } | { kind: 'broken'; why: string };

function isObject(x: unknown): x is Record<string, unknown> {
  return typeof x === 'object' && x !== null && !Array.isArray(x);
}

const listsOfView = ['machines', 'shapes', 'happenings', 'scorecard'];
const tablesOfView = ['counts', 'progress', 'losses', 'validation', 'money'];

/** Why this is no view that can be drawn; null: it is one. */
export function viewFault(x: unknown): string | null {
  if (!isObject(x)) return 'a view is not an object';
  if (x.format !== 'mayfly-view/1') return `a view has the format ${JSON.stringify(x.format)}, want "mayfly-view/1"`;
  for (const key of listsOfView) if (!Array.isArray(x[key])) return `the view has no list "${key}"`;
  for (const key of tablesOfView) {
    const table = x[key];
    if (!isObject(table) || !Array.isArray(table.t_s)) return `the view has no table "${key}"`;
  }
  return null;
}

export function asView(x: unknown): View {
  const fault = viewFault(x);
  if (fault !== null) throw new Error(fault);
  return x as View;
}

/** The document that the C++ side put into the page; `null` stands there when the page is a dashboard. */
export function readDocument(text: string): Reading {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { kind: 'broken', why: `it is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (json === null) return { kind: 'none' };
  if (!isObject(json)) return { kind: 'broken', why: 'it is not an object' };
  if (json.format !== 'mayfly-report/1')
    return { kind: 'broken', why: `its format is ${JSON.stringify(json.format)}, want "mayfly-report/1"` };
  const views: unknown[] = Array.isArray(json.views) ? json.views : [];
  for (const view of views) {
    const fault = viewFault(view);
    if (fault !== null) return { kind: 'broken', why: fault };
  }
  const rest = ['plan', 'replay', 'profile'].filter((key) => isObject(json[key]));
  if (views.length + rest.length === 0) return { kind: 'broken', why: 'it has no run, plan, replay or profile' };
  return { kind: 'doc', doc: { plan: null, replay: null, profile: null, ...json, views } as unknown as Doc };
}
