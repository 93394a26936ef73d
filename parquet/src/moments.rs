//! Days and moments as ISO 8601 writes them.

use super::Wrong;

/// Days since 1970 that are read: those of the years 0 to 9999.
const DAYS: std::ops::RangeInclusive<i64> = -719_528..=2_932_896;

/// A day by its number since 1970, as `2001-09-09`.
pub(super) fn day(number: i64) -> Result<String, Wrong> {
    if !DAYS.contains(&number) {
        return Err("a date in it is outside the years 0 to 9999".to_owned());
    }
    // Howard Hinnant's `civil_from_days`: years begin with March, eras are of 400 years.
    let shifted = number + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    Ok(format!("{year:04}-{month:02}-{day:02}"))
}

/// A moment by its number of parts of a second since 1970, as `2001-09-09T01:46:40Z`; the fraction is left out where it is 0, and the `Z` where it is
/// nowhere in particular.
pub(super) fn moment(number: i64, per_second: i64, is_utc: bool) -> Result<String, Wrong> {
    let (seconds, fraction) = (number.div_euclid(per_second), number.rem_euclid(per_second));
    let (days, seconds) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut told = format!("{}T{hours:02}:{minutes:02}:{seconds:02}", day(days)?);
    if fraction > 0 {
        let digits = per_second.ilog10() as usize;
        told.push_str(&format!(".{fraction:0digits$}"));
    }
    if is_utc {
        told.push('Z');
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_are_those_of_the_calendar() {
        for (number, told) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_574, "2001-09-09"),
            (*DAYS.start(), "0000-01-01"),
            (*DAYS.end(), "9999-12-31"),
        ] {
            assert_eq!(day(number).unwrap(), told);
        }
        assert!(day(DAYS.end() + 1).is_err() && day(i64::MIN).is_err());
        assert_eq!(moment(1_000_000_000_000, 1_000, true).unwrap(), "2001-09-09T01:46:40Z");
        assert_eq!(moment(-1, 1_000_000, false).unwrap(), "1969-12-31T23:59:59.999999");
        assert!(
            moment(i64::MAX, 1_000, true).is_err() && moment(i64::MIN, 1_000_000, true).is_err()
        );
        assert!(moment(i64::MIN, 1_000_000_000, true).is_ok());
    }
}
