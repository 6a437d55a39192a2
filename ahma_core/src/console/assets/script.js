// What moves in a page. Without this script every page is complete, and stands still.
"use strict";

const output = document.getElementById("output");
const follow = document.getElementById("follow");
let following = true;

// Text as the server writes it: the server has escaped what others wrote.
const parsed = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
};

// Makes an element like another. Only what differs is replaced, and what has an id is known again at another place, so that
// focus, selection and scrolling stay where they are.
const merge = (old, next) => {
    const wanted = new Set([...next.children].map((node) => node.id));
    [...old.children].filter((node) => node.id && !wanted.has(node.id)).forEach((node) => node.remove());
    const known = new Map([...old.children].map((node) => [node.id, node]));
    let place = old.firstChild;
    for (const node of [...next.childNodes]) {
        const before = node.id ? known.get(node.id) : place?.id ? null : place;
        if (!before) {
            old.insertBefore(node, place);
            continue;
        }
        if (before !== place) old.insertBefore(before, place);
        place = before.nextSibling;
        if (before.isEqualNode(node)) continue;
        if (before.nodeName === node.nodeName && node.nodeType === 1 && node.children.length) {
            for (const name of new Set([...before.getAttributeNames(), ...node.getAttributeNames()])) {
                const value = node.getAttribute(name);
                if (value === null) before.removeAttribute(name);
                else if (before.getAttribute(name) !== value) before.setAttribute(name, value);
            }
            merge(before, node);
        } else {
            before.replaceWith(node);
        }
    }
    while (place) {
        const gone = place;
        place = place.nextSibling;
        gone.remove();
    }
};

// Rows that a page holds; the server has the rest.
const MAX_ROWS = 5000;

const addRows = (list, html) => {
    // A stream that was interrupted begins anew, with rows that were dropped since.
    const first = Number(list.firstElementChild?.dataset.n ?? 0);
    for (const row of [...parsed(html).children]) {
        const known = document.getElementById(row.id);
        if (known) known.replaceWith(row);
        else if (Number(row.dataset.n) >= first) list.append(row);
    }
    while (list.childElementCount > MAX_ROWS) list.firstElementChild.remove();
    if (following) list.scrollTop = list.scrollHeight;
};

const setFollowing = (on) => {
    following = on;
    follow?.setAttribute("aria-pressed", String(on));
    if (follow) follow.textContent = on ? "Pause" : "Follow";
    if (on && output) output.scrollTop = output.scrollHeight;
};

if (output) output.scrollTop = output.scrollHeight;
if (follow) {
    follow.hidden = false;
    setFollowing(true);
    follow.addEventListener("click", () => setFollowing(!following));
    // One who scrolls up, by whatever means, wants to read.
    let top = output.scrollTop;
    const scrolled = () => {
        const isUp = output.scrollTop < top;
        top = output.scrollTop;
        if (isUp && top + output.clientHeight < output.scrollHeight - 8) setFollowing(false);
    };
    output.addEventListener("scroll", scrolled, { passive: true });
}

const live = document.querySelector("[data-live]")?.dataset.live;
if (live) {
    const sign = document.getElementById("live");
    const say = (text, isLost = false) => {
        sign.hidden = false;
        if (sign.textContent !== text) sign.textContent = text;
        sign.classList.toggle("lost", isLost);
    };
    let events = null;
    let isOver = false;
    const close = () => {
        events?.close();
        events = null;
    };
    const end = () => {
        close();
        isOver = true;
        if (following) return location.reload();
        // One who reads is left alone.
        document.querySelector("form.cancel")?.remove();
        say("Ended");
    };
    // After a refusal a browser does not try again: the login is over, or the operation is forgotten.
    const unheard = () =>
        events?.readyState === EventSource.CLOSED ? "Not live any more; load the page again" : "No connection; trying again";
    const open = () => {
        if (events || isOver) return;
        events = new EventSource(live);
        events.onopen = () => say("Live");
        events.onerror = () => say(unheard(), true);
        events.onmessage = (event) => {
            for (const change of JSON.parse(event.data)) {
                if (change.reload) return end();
                const element = document.getElementById(change.content ?? change.rows);
                if (!element) continue;
                if (change.rows) addRows(element, change.html);
                else merge(element, parsed(change.html));
            }
        };
    };
    // A browser has few connections to one server, and a hidden page needs none.
    const seen = () => (document.hidden ? close() : open());
    document.addEventListener("visibilitychange", seen);
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", seen);
    seen();
}

// Time goes on without the server.
const spell = (seconds) => {
    const pad = (number) => String(number).padStart(2, "0");
    if (seconds < 1) return `${Math.floor(seconds * 1000)} ms`;
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    const whole = Math.floor(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
    return `${Math.floor(whole / 3600)} h ${pad(Math.floor(whole / 60) % 60)} min`;
};
setInterval(() => {
    for (const element of document.querySelectorAll("[data-since]")) {
        element.textContent = spell(Math.max(0, Date.now() - element.dataset.since) / 1000);
    }
}, 1000);
