import { describe, expect, it } from 'vitest';
import { readDocument } from './document';
import { fixtureTexts } from './fixture';

describe('readDocument', () => {
  it('takes null for a dashboard', () => expect(readDocument('null')).toEqual({ kind: 'none' }));
  it.each(fixtureTexts)('reads %s', (_, text) => expect(readDocument(text).kind).toBe('doc'));
  it.each([
    ['{', /not JSON/],
    ['[]', /not an object/],
    ['{"format":"mayfly-report/9"}', /"mayfly-report\/9", want/],
    ['{"format":"mayfly-report/1","views":[]}', /no run, plan, replay or profile/],
    ['{"format":"mayfly-report/1","views":[{"format":"mayfly-view/1"}]}', /no list "machines"/],
  ])('says what is wrong with %s', (text, why) => {
    const reading = readDocument(text);
    expect(reading.kind === 'broken' && reading.why).toMatch(why);
  });
});
